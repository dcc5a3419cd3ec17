// The drawing of a map on a canvas: density or points, names of regions, hits, an area. It keeps no state of the page.
//
// Points are written into an image by hand: a hundred thousand take some milliseconds, without a GPU, at every move.

const PADDING = 24; // CSS pixels around the map when all of it is shown
const FEW_POINTS = 4000; // up to so many visible points are drawn as round dots
const NAMED_POINTS = 90; // up to so many visible points get their titles
const LARGEST_SCALE = 4000;
const FAR = 2; // up to this zoom, many points are drawn as density
const CELL = 6; // CSS pixels
const DIMMED = 0.25; // opacity of points that a filter leaves out
const NOWHERE = -1; // x and y of a document that this map does not have
const RINGS = [0, 10, 25, 45, 70, 100, 140, 190]; // distances at which a place for a name is looked for
const AROUND = [[0, 1], [0, -1], [1, 0], [-1, 0], [1, 1], [-1, 1], [1, -1], [-1, -1]];

/** The colours of the values of a field, for light and for dark surfaces; the last one is that of all other values. */
export const PALETTES = {
  light: ["#0b6660", "#c2571a", "#5b4fb0", "#b02a5b", "#2f7d32", "#8a6d00", "#2867b2", "#9c3fa0", "#6d4c41", "#00838f", "#7a8b00", "#8d8880"],
  dark: ["#74cbc1", "#f0a57c", "#b3a9f2", "#f08bb0", "#8fd694", "#e3c650", "#8cbcf5", "#dd9be0", "#c7a99d", "#6fd3de", "#cfdc5c", "#85817a"],
};

/** The colours of the ranges of a number or date, from low to high. */
const SCALES = {
  light: ["#5a8ce0", "#4a80d4", "#3a6fc4", "#2c59a6", "#204587", "#163268", "#0d204a"],
  dark: ["#3f6fb5", "#5585c9", "#6d9bdc", "#86b1ea", "#a2c6f4", "#bfdafb", "#ddecff"],
};

export class Picture {
  places = new Float32Array();
  colours = null; // position of the value of each point; null: one colour for all
  regions = [];
  hits = []; // points, best first
  isScale = false; // whether the colours are those of a scale
  moved = () => {}; // called when another part of the map is shown
  matching = null; // 1 for each point that passes the filter; null without a filter
  lasso = null; // corners on the map, while it is drawn and after it
  titles = new Map(); // by point
  pointed = -1; // the point that is pointed at in the other map
  #scheduled = false;
  #grid = null;
  #image = null; // its memory is used again for every frame
  regionOf = null; // position of the largest region of each point, which colours it
  #named = []; // [region, box] of each name on the canvas

  /** @param {function(number[])} needTitles is called with the visible points that have no title yet, where they are few. */
  constructor(canvas, needTitles) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.needTitles = needTitles;
    this.reset();
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  get count() {
    return this.places.length / 2;
  }

  /** Show new places with their regions. */
  setPlaces(places, regions) {
    this.places = places;
    this.regions = regions;
    this.regionOf = nearestOf(places, regions.filter((region) => region.level === 0));
    this.#grid = gridOf(places);
    [this.center, this.zoom] = [[0.5, 0.5], 1];
    this.draw();
  }

  /** Show all of the map. */
  reset() {
    this.show(0.5, 0.5, 1);
  }

  /** Show the surroundings of a place. */
  show(x, y, zoom) {
    this.center = [x, y];
    this.zoom = Math.min(Math.max(zoom, 0.8), LARGEST_SCALE);
    this.moved();
    this.draw();
  }

  /** Show the part of the map with some places, [x, y] each. */
  showAll(places) {
    places = places.filter(([x]) => x !== NOWHERE);
    if (!places.length) return;
    const [left, bottom, right, top] = [Math.min, Math.max].flatMap((most) => [0, 1].map((axis) => most(...places.map((place) => place[axis]))));
    const wide = Math.max(right - left, top - bottom, 0.05);
    this.show((left + right) / 2, (bottom + top) / 2, Math.min(0.8 / wide, 12));
  }

  /** Return the picture as a PNG, on the colour of the page. */
  async toFile() {
    const copy = Object.assign(document.createElement("canvas"), { width: this.canvas.width, height: this.canvas.height });
    const context = copy.getContext("2d");
    context.fillStyle = getComputedStyle(this.canvas).getPropertyValue("--surface");
    context.fillRect(0, 0, copy.width, copy.height);
    context.drawImage(this.canvas, 0, 0);
    return new Promise((resolve) => { copy.toBlob(resolve, "image/png"); });
  }

  /** Zoom by a factor around a position on the canvas, which stays where it is. */
  zoomAt(factor, px, py) {
    const before = this.placeAt(px, py);
    this.zoom = Math.min(Math.max(this.zoom * factor, 0.8), LARGEST_SCALE);
    const after = this.placeAt(px, py);
    this.center = [this.center[0] + before[0] - after[0], this.center[1] + before[1] - after[1]];
    this.moved();
    this.draw();
  }

  /** Zoom by a factor around the point nearest to the middle: in the middle itself may be nothing. */
  zoomBy(factor) {
    const { clientWidth, clientHeight } = this.canvas;
    const middle = [clientWidth / 2, clientHeight / 2];
    const point = this.pointAt(...middle, Math.max(...middle));
    this.zoomAt(factor, ...(point < 0 ? middle : this.positionOf(this.places[2 * point], this.places[2 * point + 1])));
  }

  pan(dx, dy) {
    const [sx, sy] = this.#scales();
    this.center = [this.center[0] - dx / sx, this.center[1] + dy / sy];
    this.moved();
    this.draw();
  }

  /** Return the place at a position on the canvas, in CSS pixels. The map's y goes up. */
  placeAt(px, py) {
    const [sx, sy] = this.#scales();
    return [this.center[0] + (px - this.canvas.clientWidth / 2) / sx, this.center[1] - (py - this.canvas.clientHeight / 2) / sy];
  }

  positionOf(x, y) {
    const [sx, sy] = this.#scales();
    return [this.canvas.clientWidth / 2 + (x - this.center[0]) * sx, this.canvas.clientHeight / 2 - (y - this.center[1]) * sy];
  }

  /** Return px = left + x * sx and py = top - y * sy of a place. Asking the canvas for its size at every point is slow. */
  #projection() {
    const [sx, sy] = this.#scales();
    return [this.canvas.clientWidth / 2 - this.center[0] * sx, this.canvas.clientHeight / 2 + this.center[1] * sy, sx, sy];
  }

  /** Return the point nearest to a position on the canvas, within some pixels; -1 where there is none. */
  pointAt(px, py, within = 10) {
    const [left, top] = this.placeAt(px - within, py - within);
    const [right, bottom] = this.placeAt(px + within, py + within);
    let best = -1;
    let least = within;
    for (const point of inside(this.#grid, this.places, left, bottom, right, top)) {
      const [x, y] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      const distance = Math.hypot(x - px, y - py);
      if (distance <= least) [best, least] = [point, distance];
    }
    return best;
  }

  /** Draw with the next frame. */
  draw() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      this.#draw();
    });
  }

  /** Return how many CSS pixels the map is wide and high. It fills the canvas: its proportions mean nothing. */
  #scales() {
    const { clientWidth, clientHeight } = this.canvas;
    return [clientWidth, clientHeight].map((length) => Math.max(1, length - 2 * PADDING) * this.zoom);
  }

  #draw() {
    const { canvas, context } = this;
    const ratio = devicePixelRatio || 1;
    const width = Math.round(canvas.clientWidth * ratio);
    const height = Math.round(canvas.clientHeight * ratio);
    if (!width || !height) return;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const style = getComputedStyle(canvas);
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const palette = [...(isDark ? PALETTES.dark : PALETTES.light)];
    if (this.isScale) palette.splice(0, SCALES.light.length, ...(isDark ? SCALES.dark : SCALES.light));
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    const visible = this.#visible();
    if (visible && visible.length <= FEW_POINTS) this.#drawDots(visible, palette, ratio);
    else if (this.zoom <= FAR) this.#drawDensity(palette);
    else this.#drawImage(visible, palette, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#drawLasso(style);
    const names = new Names(context, style, canvas, this.#occupied(visible));
    this.#drawHits(style, names);
    this.#drawPointed(style);
    this.#named = this.#drawRegions(names);
    this.#drawTitles(visible, names);
    canvas.dataset.drawn = String(Number(canvas.dataset.drawn ?? 0) + 1);
  }

  /** Return the points on the canvas; null for all of the map, where most points are on it. */
  #visible() {
    if (this.zoom <= 4 && this.count > FEW_POINTS) return null;
    const [left, top] = this.placeAt(0, 0);
    const [right, bottom] = this.placeAt(this.canvas.clientWidth, this.canvas.clientHeight);
    return inside(this.#grid, this.places, left, bottom, right, top);
  }

  #colourOf(point) {
    return Math.min(this.colours ? this.colours[point] : this.regionOf[point], PALETTES.light.length - 1);
  }

  /** Return whether a point is one of those that the filter leaves. */
  #isLit(point) {
    return !this.matching || this.matching[point] === 1;
  }

  #drawDots(points, palette, ratio) {
    const { context } = this;
    const radius = Math.min(5, (this.count < 1000 ? 3.5 : 2) + Math.log2(Math.max(1, this.zoom)) * 0.5) * ratio;
    const paths = palette.map(() => new Path2D());
    const dimmed = new Path2D();
    for (const point of points) {
      const [px, py] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      const path = this.#isLit(point) ? paths[this.#colourOf(point)] : dimmed;
      path.moveTo(px * ratio + radius, py * ratio);
      path.arc(px * ratio, py * ratio, radius, 0, 2 * Math.PI);
    }
    context.globalAlpha = DIMMED;
    context.fillStyle = palette.at(-1);
    context.fill(dimmed);
    context.globalAlpha = 1;
    paths.forEach((path, colour) => {
      context.fillStyle = palette[colour];
      context.fill(path);
    });
  }

  /** Draw how many documents are where: cells of some pixels in the colour that most of their documents have. */
  #drawDensity(palette) {
    const { canvas, context } = this;
    const [columns, rows] = [canvas.clientWidth, canvas.clientHeight].map((length) => Math.ceil(length / CELL));
    const [left, top, sx, sy] = this.#projection();
    const counts = new Uint16Array(columns * rows * palette.length);
    for (let point = 0; point < this.count; point += 1) {
      if (!this.#isLit(point)) continue;
      const column = Math.floor((left + this.places[2 * point] * sx) / CELL);
      const row = Math.floor((top - this.places[2 * point + 1] * sy) / CELL);
      if (column >= 0 && row >= 0 && column < columns && row < rows) counts[(row * columns + column) * palette.length + this.#colourOf(point)] += 1;
    }
    const small = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
    const image = new ImageData(columns, rows);
    const inks = palette.map((colour) => Number.parseInt(colour.slice(1), 16));
    const totals = Array.from({ length: columns * rows }, (_, cell) => counts.subarray(cell * palette.length, (cell + 1) * palette.length).reduce((sum, each) => sum + each, 0));
    const most = Math.log1p(totals.reduce((high, each) => Math.max(high, each), 1));
    totals.forEach((total, cell) => {
      if (!total) return;
      const of = counts.subarray(cell * palette.length, (cell + 1) * palette.length);
      const ink = inks[of.indexOf(Math.max(...of))];
      image.data.set([ink >> 16, (ink >> 8) & 255, ink & 255, 255 * (0.55 + (0.45 * Math.log1p(total)) / most)], 4 * cell);
    });
    small.getContext("2d").putImageData(image, 0, 0);
    context.drawImage(small, 0, 0, columns * CELL * devicePixelRatio, rows * CELL * devicePixelRatio);
  }

  /** Return the cells of the canvas that have a point: names are written beside them. */
  #occupied(visible) {
    const [columns, rows] = [this.canvas.clientWidth, this.canvas.clientHeight].map((length) => Math.ceil(length / CELL));
    const [left, top, sx, sy] = this.#projection();
    const taken = new Uint8Array(columns * rows);
    const count = visible ? visible.length : this.count;
    for (let at = 0; at < count; at += 1) {
      const point = visible ? visible[at] : at;
      const column = Math.floor((left + this.places[2 * point] * sx) / CELL);
      const row = Math.floor((top - this.places[2 * point + 1] * sy) / CELL);
      if (column >= 0 && row >= 0 && column < columns && row < rows) taken[row * columns + column] = 1;
    }
    return { taken, columns };
  }

  /** Write points, or all of them, into the canvas's pixels. */
  #drawImage(points, palette, ratio) {
    const { canvas, context, places } = this;
    const { width, height } = canvas;
    if (this.#image?.width !== width || this.#image?.height !== height) this.#image = context.createImageData(width, height);
    const pixels = new Uint32Array(this.#image.data.buffer);
    pixels.fill(0);
    const inks = Uint32Array.from(palette, (colour) => {
      const value = Number.parseInt(colour.slice(1), 16);
      return (0xff << 24) | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16); // little-endian RGBA
    });
    const [sx, sy] = this.#scales().map((scale) => scale * ratio);
    const left = width / 2 - this.center[0] * sx;
    const top = height / 2 + this.center[1] * sy;
    const size = Math.max(1, Math.round((this.zoom > 3 ? 2.5 : 1.5) * ratio));
    const count = points ? points.length : this.count;
    for (let at = 0; at < count; at += 1) {
      const point = points ? points[at] : at;
      const px = (left + places[2 * point] * sx) | 0;
      const py = (top - places[2 * point + 1] * sy) | 0;
      if (px < 0 || py < 0 || px + size > width || py + size > height) continue;
      const ink = this.#isLit(point) ? inks[this.#colourOf(point)] : (inks.at(-1) & 0xffffff) | ((255 * DIMMED) << 24);
      for (let row = 0, first = py * width + px; row < size; row += 1, first += width) {
        for (let column = 0; column < size; column += 1) pixels[first + column] = ink;
      }
    }
    context.putImageData(this.#image, 0, 0);
  }

  #drawLasso(style) {
    if (!this.lasso || this.lasso.length < 2) return;
    const { context } = this;
    context.beginPath();
    this.lasso.forEach(([x, y], at) => (at ? context.lineTo(...this.positionOf(x, y)) : context.moveTo(...this.positionOf(x, y))));
    context.closePath();
    context.fillStyle = style.getPropertyValue("--accent");
    context.globalAlpha = 0.12;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = style.getPropertyValue("--accent");
    context.lineWidth = 1.5;
    context.stroke();
  }

  #drawHits(style, names) {
    const { context } = this;
    const ink = style.getPropertyValue("--ink");
    const surface = style.getPropertyValue("--surface");
    this.hits.toReversed().forEach((point, at) => {
      if (this.places[2 * point] === NOWHERE) return;
      const [px, py] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      context.beginPath();
      context.arc(px, py, 10, 0, 2 * Math.PI);
      context.fillStyle = ink;
      context.fill();
      context.lineWidth = 2;
      context.strokeStyle = surface;
      context.stroke();
      context.font = `650 11px ${style.fontFamily}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillStyle = surface;
      context.fillText(String(this.hits.length - at), px, py);
      names.take(px, py, 11);
    });
    for (const point of this.hits.filter((each) => this.places[2 * each] !== NOWHERE)) {
      const [px, py] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      const title = this.titles.get(point)?.title;
      if (title) names.write(shortened(title), px, py, { weight: 550, apart: 22, rings: 4 });
    }
  }

  /** Draw a ring around the point that the pointer is at in the other map. */
  #drawPointed(style) {
    if (this.pointed < 0 || this.places[2 * this.pointed] === NOWHERE) return;
    const { context } = this;
    context.beginPath();
    context.arc(...this.positionOf(this.places[2 * this.pointed], this.places[2 * this.pointed + 1]), 12, 0, 2 * Math.PI);
    context.lineWidth = 3;
    context.strokeStyle = style.getPropertyValue("--ink");
    context.stroke();
  }

  #drawTitles(visible, names) {
    if (!visible?.length || visible.length > NAMED_POINTS) return;
    const missing = visible.filter((point) => !this.titles.has(point));
    if (missing.length) this.needTitles(missing);
    for (const point of visible) {
      const title = this.titles.get(point)?.title;
      const [px, py] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      if (title && !this.hits.includes(point)) names.write(shortened(title), px, py, { size: 12, apart: 15 });
    }
  }

  /** Return the region whose name is at a position on the canvas. */
  regionNamedAt(px, py) {
    return this.#named.find(([, box]) => px >= box[0] && px <= box[2] && py >= box[1] && py <= box[3])?.[0] ?? null;
  }

  #drawRegions(names) {
    const named = [];
    for (const region of this.shownRegions.sort((one, other) => other.documents - one.documents)) {
      const [px, py] = this.positionOf(region.x, region.y);
      if (px < 0 || py < 0 || px > this.canvas.clientWidth || py > this.canvas.clientHeight) continue;
      const box = names.write(nameOf(region), px, py, { size: region.level ? 13 : 15, weight: 650, isSure: !region.level });
      if (box) named.push([region, box]);
    }
    return named;
  }

  /** The regions whose names are shown at this zoom. */
  get shownRegions() {
    const level = this.zoom < 2.2 ? 0 : this.zoom < 6 ? 1 : 2;
    const levels = new Set(this.regions.map((region) => region.level));
    const shown = levels.has(level) ? level : Math.max(...levels);
    return this.regions.filter((region) => region.level === shown);
  }
}

export const nameOf = (region) => region.terms.join(" · ");

/** Return the corners of the part of the map that is nearer to a region's middle than to any other of its level. */
export function areaOf(region, regions) {
  let corners = [[-0.01, -0.01], [1.01, -0.01], [1.01, 1.01], [-0.01, 1.01]];
  for (const other of regions) {
    if (other === region || other.level !== region.level) continue;
    const [dx, dy] = [other.x - region.x, other.y - region.y];
    const border = (dx * (other.x + region.x) + dy * (other.y + region.y)) / 2;
    const past = ([x, y]) => dx * x + dy * y - border;
    corners = corners.flatMap((corner, at) => {
      const next = corners[(at + 1) % corners.length];
      const [here, there] = [past(corner), past(next)];
      const cut = here / (here - there);
      const crossing = (here < 0) === (there < 0) ? [] : [corner.map((value, axis) => value + cut * (next[axis] - value))];
      return here <= 0 ? [corner, ...crossing] : crossing;
    });
  }
  return corners.map((corner) => corner.map((value) => Number(value.toFixed(5))));
}

/** Return the position of the nearest region for each place. */
function nearestOf(places, regions) {
  const nearest = new Uint8Array(places.length / 2);
  for (let point = 0; point < nearest.length; point += 1) {
    let least = Infinity;
    for (let at = 0; at < regions.length; at += 1) {
      const distance = (places[2 * point] - regions[at].x) ** 2 + (places[2 * point + 1] - regions[at].y) ** 2;
      if (distance < least) [least, nearest[point]] = [distance, at];
    }
  }
  return nearest;
}

/** Writes names on the canvas: whole, none over another, and beside the points. */
class Names {
  #taken = [];

  constructor(context, style, canvas, occupied) {
    this.context = context;
    this.canvas = canvas;
    this.occupied = occupied;
    this.font = style.fontFamily;
    this.ink = style.getPropertyValue("--ink");
    this.muted = style.getPropertyValue("--muted");
    this.halo = style.getPropertyValue("--surface");
  }

  /** Keep names away from a position. */
  take(px, py, around) {
    this.#taken.push([px - around, py - around, px + around, py + around]);
  }

  /**
   * Write a name near a position, where it covers fewest points.
   * @param {number} apart how many pixels from the position at least
   * @param {number} rings how far from the position
   * @param {boolean} isSure write it also where it covers points; otherwise it is left out there
   */
  write(text, px, py, { size = 13, weight = 400, apart = 0, rings = 2, isSure = false } = {}) {
    const { context } = this;
    context.font = `${weight} ${size}px ${this.font}`;
    const half = context.measureText(text).width / 2 + 5;
    const high = size / 2 + 3;
    const steps = isSure ? RINGS : RINGS.slice(0, rings);
    let best = null;
    for (const ring of steps) {
      for (const [dx, dy] of ring ? AROUND : [[0, 1], [0, -1], [1, 0], [-1, 0]]) {
        const x = Math.min(Math.max(px + dx * (apart && half + apart / 2 + ring * 2 || ring * 2), half), this.canvas.clientWidth - half);
        const y = Math.min(Math.max(py + dy * (apart + ring), high), this.canvas.clientHeight - high);
        const box = [x - half, y - high, x + half, y + high];
        if (this.#taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
        const covered = this.#covered(box);
        if (!best || covered < best.covered) best = { x, y, box, covered };
        if (!covered) break;
      }
      if (best?.covered === 0) break;
    }
    if (!best || (best.covered && !isSure)) return null;
    this.#taken.push(best.box);
    if (Math.hypot(best.x - px, best.y - py) > 40) {
      context.strokeStyle = this.muted;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(px, py);
      context.lineTo(Math.min(Math.max(px, best.box[0]), best.box[2]), Math.min(Math.max(py, best.box[1]), best.box[3]));
      context.stroke();
    }
    if (best.covered) {
      context.fillStyle = this.halo;
      context.fillRect(best.box[0], best.box[1], 2 * half, 2 * high);
    }
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = this.halo;
    context.strokeText(text, best.x, best.y);
    context.fillStyle = this.ink;
    context.fillText(text, best.x, best.y);
    return best.box;
  }

  /** Return how many cells with points a box covers. */
  #covered([left, top, right, bottom]) {
    const { taken, columns } = this.occupied;
    let covered = 0;
    for (let row = Math.floor(top / CELL); row <= bottom / CELL; row += 1) {
      for (let column = Math.floor(left / CELL); column <= right / CELL; column += 1) {
        if (column < columns) covered += taken[row * columns + column] ?? 0;
      }
    }
    return covered;
  }
}

const shortened = (text) => (text.length > 42 ? `${text.slice(0, 40).trimEnd()}…` : text);

// a grid over the map, to find points near a place

const CELLS = 128;

function gridOf(places) {
  const count = places.length / 2;
  const cells = new Uint32Array(count);
  const starts = new Uint32Array(CELLS * CELLS + 1);
  for (let point = 0; point < count; point += 1) {
    cells[point] = cellOf(places[2 * point + 1]) * CELLS + cellOf(places[2 * point]);
    starts[cells[point] + 1] += 1;
  }
  for (let cell = 0; cell < CELLS * CELLS; cell += 1) starts[cell + 1] += starts[cell];
  const filled = starts.slice();
  const points = new Uint32Array(count);
  for (let point = 0; point < count; point += 1) points[filled[cells[point]]++] = point;
  return { starts, points };
}

const cellOf = (coordinate) => Math.min(CELLS - 1, Math.max(0, Math.floor(coordinate * CELLS)));

function inside(grid, places, left, bottom, right, top) {
  const points = [];
  if (!grid) return points;
  for (let row = cellOf(bottom); row <= cellOf(top); row += 1) {
    const first = grid.starts[row * CELLS + cellOf(left)];
    const last = grid.starts[row * CELLS + cellOf(right) + 1];
    for (let at = first; at < last; at += 1) {
      const point = grid.points[at];
      const x = places[2 * point];
      const y = places[2 * point + 1];
      if (x >= left && x <= right && y >= bottom && y <= top) points.push(point);
    }
  }
  return points;
}

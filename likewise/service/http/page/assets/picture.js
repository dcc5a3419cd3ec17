// The drawing of a map on a canvas: density or points, names of regions, hits, an area. It keeps no state of the page.

const PADDING = 24; // CSS pixels around the map when all of it is shown
const FEW_POINTS = 4000; // up to so many visible points are drawn as round dots
const NAMED_POINTS = 90; // up to so many visible points get their titles
const LARGEST_SCALE = 4000;
const FAR = 2; // up to this zoom, many points are drawn as large cells
const CELL = 6; // CSS pixels
const SMALL_CELL = 2; // nearer than that
const DIMMED = 0.25; // opacity of points that a filter leaves out
const RINGS = [0, 10, 20]; // distances at which a place for a name is looked for: further off nobody sees whose it is
const NARROW = 600; // on a narrower canvas hits are numbers, and nothing else has a name beside them
const AROUND = [[0, 1], [0, -1], [1, 0], [-1, 0], [1, 1], [-1, 1], [1, -1], [-1, -1]];

/** The colours of the values of a field, for light and for dark surfaces; the last one is that of all other values. */
const PALETTES = {
  light: ["#0b6660", "#c2571a", "#5b4fb0", "#b02a5b", "#2f7d32", "#8a6d00", "#2867b2", "#9c3fa0", "#6d4c41", "#00838f", "#7a8b00", "#8d8880"],
  dark: ["#74cbc1", "#f0a57c", "#b3a9f2", "#f08bb0", "#8fd694", "#e3c650", "#8cbcf5", "#dd9be0", "#c7a99d", "#6fd3de", "#cfdc5c", "#85817a"],
};

/** The colours of the ranges of a number or date, from low to high. */
const SCALES = {
  light: ["#5a8ce0", "#4a80d4", "#3a6fc4", "#2c59a6", "#204587", "#163268", "#0d204a"],
  dark: ["#3f6fb5", "#5585c9", "#6d9bdc", "#86b1ea", "#a2c6f4", "#bfdafb", "#ddecff"],
};

/** Position of the colour of all other values. */
export const OTHER = PALETTES.light.length - 1;

/** Return the colour of a value, for CSS. */
export const inkOf = (at, isScale = false) => `light-dark(${(isScale ? SCALES : PALETTES).light[at]}, ${(isScale ? SCALES : PALETTES).dark[at]})`;

export class Picture {
  places = new Float32Array();
  colours = null; // position of the value of each point; null: one colour for all
  regions = [];
  hits = []; // points, best first
  weak = new Set(); // those that are weak matches
  isScale = false; // whether the colours are those of a scale
  moved = () => {}; // called when another part of the map is shown
  matching = null; // 1 for each point that passes the filter; null without a filter
  lasso = null; // corners on the map, while it is drawn and after it
  isOfRegion = false; // whether these are those of a region, whose outermost documents are on its border
  titles = new Map(); // by point
  #scheduled = false;
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
    [this.center, this.zoom] = [[0.5, 0.5], 1];
    this.draw();
  }

  /** Show all of the map. */
  reset() {
    this.show(0.5, 0.5, 1);
  }

  /** Show the surroundings of a place. */
  show(x, y, zoom = this.zoom) {
    this.center = [x, y];
    this.zoom = Math.min(Math.max(zoom, 0.8), LARGEST_SCALE);
    this.moved();
    this.draw();
  }

  /** Show the part of the map with most of some places, [x, y] each: without the outermost twentieth of many. */
  showAll(places) {
    if (!places.length) return;
    const cut = Math.floor(places.length / 20);
    const [[left, right], [bottom, top]] = [0, 1].map((axis) => places.map((place) => place[axis]).sort((one, other) => one - other))
      .map((sorted) => [sorted[cut], sorted.at(-1 - cut)]);
    const wide = Math.max(right - left, top - bottom, 0.05);
    this.show((left + right) / 2, (bottom + top) / 2, Math.min(0.8 / wide, 12));
  }

  /** Zoom by a factor around a position on the canvas, which stays where it is. */
  zoomAt(factor, px, py) {
    const before = this.placeAt(px, py);
    this.show(...this.center, this.zoom * factor);
    const after = this.placeAt(px, py);
    this.show(this.center[0] + before[0] - after[0], this.center[1] + before[1] - after[1]);
  }

  /** Zoom by a factor: into the middle of the points that pass the filter around the one nearest to the middle, where may be nothing. */
  zoomBy(factor) {
    const middle = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    const nearest = factor > 1 ? this.pointAt(...middle, Math.max(...middle), true) : -1;
    const [x, y] = nearest < 0 ? this.center : this.places.slice(2 * nearest, 2 * nearest + 2);
    const away = 0.4 / (this.zoom * factor);
    const around = this.#within(x - away, y - away, x + away, y + away).filter((point) => nearest >= 0 && this.#isLit(point));
    const mean = (axis, alone) => around.reduce((sum, point) => sum + this.places[2 * point + axis], 0) / around.length || alone;
    this.show(mean(0, x), mean(1, y), this.zoom * factor);
  }

  pan(dx, dy) {
    const [sx, sy] = this.#scales();
    this.show(this.center[0] - dx / sx, this.center[1] + dy / sy);
  }

  /** Return the place at a position on the canvas, in CSS pixels. The map's y goes up. */
  placeAt(px, py) {
    const [sx, sy] = this.#scales();
    return [this.center[0] + (px - this.canvas.clientWidth / 2) / sx, this.center[1] - (py - this.canvas.clientHeight / 2) / sy];
  }

  positionOf(x, y) {
    const [left, top, sx, sy] = this.#projection();
    return [left + x * sx, top - y * sy];
  }

  /** Return px = left + x * sx and py = top - y * sy of a place. Asking the canvas for its size at every point is slow. */
  #projection() {
    const [sx, sy] = this.#scales();
    return [this.canvas.clientWidth / 2 - this.center[0] * sx, this.canvas.clientHeight / 2 + this.center[1] * sy, sx, sy];
  }

  /** Return the point nearest to a position on the canvas, within some pixels, that passes the filter if it must; -1 for none. */
  pointAt(px, py, within = 10, isPassing = false) {
    const [left, top] = this.placeAt(px - within, py - within);
    const [right, bottom] = this.placeAt(px + within, py + within);
    let best = -1;
    let least = within;
    for (const point of this.#within(left, bottom, right, top)) {
      const [x, y] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      const distance = Math.hypot(x - px, y - py);
      if (distance <= least && (!isPassing || this.#isLit(point))) [best, least] = [point, distance];
    }
    return best;
  }

  /** Return the points in a rectangle of the map: a hundred thousand are looked through in less than a millisecond. */
  #within(left, bottom, right, top) {
    const points = [];
    for (let point = 0; point < this.count; point += 1) {
      const [x, y] = [this.places[2 * point], this.places[2 * point + 1]];
      if (x >= left && x <= right && y >= bottom && y <= top) points.push(point);
    }
    return points;
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
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const visible = this.#visible();
    this.#drawLasso(style);
    if (visible && visible.length <= FEW_POINTS) this.#drawDots(visible, palette);
    else this.#drawDensity(visible, palette);
    const names = new Names(context, style, canvas, this.#occupied(visible));
    this.#drawHits(style, names);
    const isFull = names.isNarrow && this.hits.length > 0;
    this.#named = isFull ? [] : this.#drawRegions(names);
    if (!isFull) this.#drawTitles(visible, names);
    canvas.dataset.drawn = String(Number(canvas.dataset.drawn ?? 0) + 1);
  }

  /** Return the points on the canvas; null for all of the map, where most points are on it. */
  #visible() {
    if (this.zoom <= 4 && this.count > FEW_POINTS) return null;
    const [left, top] = this.placeAt(0, 0);
    const [right, bottom] = this.placeAt(this.canvas.clientWidth, this.canvas.clientHeight);
    return this.#within(left, bottom, right, top);
  }

  #colourOf(point) {
    return Math.min(this.colours ? this.colours[point] : this.regionOf[point], OTHER);
  }

  /** Return whether a point is one of those that the filter leaves. */
  #isLit(point) {
    return !this.matching || this.matching[point] === 1;
  }

  #drawDots(points, palette) {
    const { context } = this;
    const radius = Math.min(5, (this.count < 1000 ? 3.5 : 2) + Math.log2(Math.max(1, this.zoom)) * 0.5);
    const paths = palette.map(() => new Path2D());
    const dimmed = new Path2D();
    for (const point of points) {
      const [px, py] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      const path = this.#isLit(point) ? paths[this.#colourOf(point)] : dimmed;
      path.moveTo(px + radius, py);
      path.arc(px, py, radius, 0, 2 * Math.PI);
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

  /** Call `visit(point, cell)` for the points, or all of them, that are on the canvas, divided into cells of `size` pixels. */
  #visitCells(points, size, visit) {
    const [columns, rows] = this.#cells(size);
    const [left, top, sx, sy] = this.#projection();
    const count = points ? points.length : this.count;
    for (let at = 0; at < count; at += 1) {
      const point = points ? points[at] : at;
      const column = Math.floor((left + this.places[2 * point] * sx) / size);
      const row = Math.floor((top - this.places[2 * point + 1] * sy) / size);
      if (column >= 0 && row >= 0 && column < columns && row < rows) visit(point, row * columns + column);
    }
  }

  #cells(size) {
    return [this.canvas.clientWidth, this.canvas.clientHeight].map((length) => Math.ceil(length / size));
  }

  /** Draw how many documents are where: cells in the colour that most of their documents have. */
  #drawDensity(points, palette) {
    const { context } = this;
    const size = this.zoom <= FAR ? CELL : SMALL_CELL;
    const [columns, rows] = this.#cells(size);
    const counts = new Uint32Array(columns * rows);
    const leads = new Int32Array(columns * rows); // of the colour of a cell: documents of another colour take from it
    const colours = new Uint8Array(columns * rows);
    const dimmed = new Uint8Array(columns * rows);
    this.#visitCells(points, size, (point, cell) => {
      if (!this.#isLit(point)) {
        dimmed[cell] = 1;
        return;
      }
      const colour = this.#colourOf(point);
      if (!leads[cell]) colours[cell] = colour;
      leads[cell] += colours[cell] === colour ? 1 : -1;
      counts[cell] += 1;
    });
    const most = Math.log1p(counts.reduce((high, each) => Math.max(high, each), 1));
    const inks = palette.map((colour) => Number.parseInt(colour.slice(1), 16));
    const image = new ImageData(columns, rows);
    counts.forEach((count, cell) => {
      if (!count && !dimmed[cell]) return;
      const ink = inks[count ? colours[cell] : OTHER];
      const opacity = count ? 0.55 + (0.45 * Math.log1p(count)) / most : DIMMED;
      image.data.set([ink >> 16, (ink >> 8) & 255, ink & 255, 255 * opacity], 4 * cell);
    });
    const small = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
    small.getContext("2d").putImageData(image, 0, 0);
    context.drawImage(small, 0, 0, columns * size, rows * size);
  }

  /** Return the cells of the canvas that have a point: names are written beside them. */
  #occupied(visible) {
    const [columns, rows] = this.#cells(CELL);
    const taken = new Uint8Array(columns * rows);
    this.#visitCells(visible, CELL, (_, cell) => { taken[cell] = 1; });
    return { taken, columns };
  }

  #drawLasso(style) {
    if (!this.lasso || this.lasso.length < 2) return;
    const { context } = this;
    context.beginPath();
    this.lasso.forEach(([x, y], at) => (at ? context.lineTo(...this.positionOf(x, y)) : context.moveTo(...this.positionOf(x, y))));
    context.closePath();
    context.fillStyle = style.getPropertyValue("--accent-soft");
    context.fill();
    context.strokeStyle = style.getPropertyValue(this.isOfRegion ? "--accent-soft" : "--accent");
    Object.assign(context, { lineJoin: "round", lineWidth: this.isOfRegion ? 24 : 1.5 });
    context.stroke();
  }

  #drawHits(style, names) {
    const { context } = this;
    const placed = this.hits.map((point, at) => [point, String(at + 1), ...this.positionOf(this.places[2 * point], this.places[2 * point + 1])]);
    Object.assign(context, { lineWidth: 2, font: `650 11px ${style.fontFamily}`, textAlign: "center", textBaseline: "middle" });
    context.strokeStyle = style.getPropertyValue("--surface");
    for (const [point, number, px, py] of placed.toReversed()) {
      context.beginPath();
      context.arc(px, py, 10, 0, 2 * Math.PI);
      context.fillStyle = style.getPropertyValue(this.weak.has(point) ? "--muted" : "--ink");
      context.fill();
      context.stroke();
      context.fillStyle = style.getPropertyValue("--surface");
      context.fillText(number, px, py);
      names.take(px, py, 11);
    }
    for (const [point, , px, py] of placed) {
      const title = this.titles.get(point)?.title;
      if (title && !names.isNarrow) names.write(shortened(title), px, py, { weight: 550, apart: 22 });
    }
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
    const level = this.zoom < 2.2 ? 0 : this.zoom < 6 ? 1 : 2;
    const deepest = Math.max(...this.regions.map((region) => region.level));
    const shown = this.regions.filter((region) => region.level === Math.min(level, deepest));
    for (const region of shown.sort((one, other) => other.documents - one.documents)) {
      const [px, py] = this.positionOf(region.x, region.y);
      if (px < 0 || py < 0 || px > this.canvas.clientWidth || py > this.canvas.clientHeight) continue;
      const box = names.write(shortened(regionName(region)), px, py, { size: region.level || names.isNarrow ? 13 : 15, weight: 650, isSure: !region.level });
      if (box) named.push([region, box]);
    }
    return named;
  }
}

export const regionName = (region) => region.terms.join(" · ");

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
    Object.assign(this, { context, style, canvas, occupied, isNarrow: canvas.clientWidth < NARROW });
  }

  /** Keep names away from a position. */
  take(px, py, around) {
    this.#taken.push([px - around, py - around, px + around, py + around]);
  }

  /** Write a name near a position where it covers fewest points, `apart` pixels away at least; over points only if `isSure`. One without such a place is left out. */
  write(text, px, py, { size = 13, weight = 400, apart = 0, isSure = false } = {}) {
    const { context } = this;
    context.font = `${weight} ${size}px ${this.style.fontFamily}`;
    const half = context.measureText(text).width / 2 + 5;
    const high = size / 2 + 3;
    let best = null;
    for (const ring of RINGS) {
      for (const [dx, dy] of ring ? AROUND : [[0, 1], [0, -1], [1, 0], [-1, 0]]) {
        const x = Math.min(Math.max(px + dx * (apart && half + apart / 2 + ring || ring * 2), half), this.canvas.clientWidth - half);
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
    if (best.covered) {
      context.fillStyle = this.style.getPropertyValue("--surface");
      context.fillRect(best.box[0], best.box[1], 2 * half, 2 * high);
    }
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = this.style.getPropertyValue("--surface");
    context.strokeText(text, best.x, best.y);
    context.fillStyle = this.style.getPropertyValue("--ink");
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

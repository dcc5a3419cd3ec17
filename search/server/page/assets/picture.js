// The drawing of a map on a canvas: points, names of regions, hits, the lasso. It keeps no state of the page.
//
// Points are written into an image by hand: a hundred thousand take some milliseconds, without a GPU, at every move.

const PADDING = 24; // CSS pixels around the map when all of it is shown
const FEW_POINTS = 4000; // up to so many visible points are drawn as round dots
const NAMED_POINTS = 90; // up to so many visible points get their titles
const LARGEST_SCALE = 4000;

/** The colours of the values of a field, for light and for dark surfaces; the last one is that of all other values. */
export const PALETTES = {
  light: ["#0b6660", "#c2571a", "#5b4fb0", "#b02a5b", "#2f7d32", "#8a6d00", "#2867b2", "#9c3fa0", "#6d4c41", "#00838f", "#7a8b00", "#8d8880"],
  dark: ["#74cbc1", "#f0a57c", "#b3a9f2", "#f08bb0", "#8fd694", "#e3c650", "#8cbcf5", "#dd9be0", "#c7a99d", "#6fd3de", "#cfdc5c", "#85817a"],
};

export class Picture {
  places = new Float32Array();
  colours = null; // position of the value of each point; null: one colour for all
  regions = [];
  hits = []; // points, best first
  question = null; // its place
  lasso = null; // corners on the map, while it is drawn and after it
  titles = new Map(); // by point
  #scheduled = false;
  #grid = null;
  #image = null; // its memory is used again for every frame

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

  /** Show new places. */
  setPlaces(places) {
    this.places = places;
    this.titles.clear();
    this.#grid = gridOf(places);
    this.reset();
  }

  /** Show all of the map. */
  reset() {
    this.center = [0.5, 0.5];
    this.zoom = 1;
    this.draw();
  }

  /** Show the surroundings of a place. */
  show(x, y, zoom) {
    this.center = [x, y];
    this.zoom = Math.min(Math.max(zoom, 1), LARGEST_SCALE);
    this.draw();
  }

  /** Zoom by a factor around a position on the canvas, which stays where it is. */
  zoomAt(factor, px, py) {
    const before = this.placeAt(px, py);
    this.zoom = Math.min(Math.max(this.zoom * factor, 0.8), LARGEST_SCALE);
    const after = this.placeAt(px, py);
    this.center = [this.center[0] + before[0] - after[0], this.center[1] + before[1] - after[1]];
    this.draw();
  }

  pan(dx, dy) {
    const [sx, sy] = this.#scales();
    this.center = [this.center[0] - dx / sx, this.center[1] + dy / sy];
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
    const palette = isDark ? PALETTES.dark : PALETTES.light;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    const visible = this.#visible();
    if (visible && visible.length <= FEW_POINTS) this.#drawDots(visible, palette, ratio);
    else this.#drawImage(visible, palette, ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#drawLasso(style);
    const names = new Names(context, style);
    this.#drawHits(style, names);
    this.#drawTitles(visible, names);
    this.#drawRegions(names);
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
    if (!this.colours) return 0;
    return Math.min(this.colours[point], PALETTES.light.length - 1);
  }

  #drawDots(points, palette, ratio) {
    const { context } = this;
    const radius = Math.min(5, (this.count < 1000 ? 3.5 : 2) + Math.log2(Math.max(1, this.zoom)) * 0.5) * ratio;
    const paths = palette.map(() => new Path2D());
    for (const point of points) {
      const [px, py] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      const path = paths[this.#colourOf(point)];
      path.moveTo(px * ratio + radius, py * ratio);
      path.arc(px * ratio, py * ratio, radius, 0, 2 * Math.PI);
    }
    context.globalAlpha = this.hits.length ? 0.5 : 0.8;
    paths.forEach((path, colour) => {
      context.fillStyle = palette[colour];
      context.fill(path);
    });
    context.globalAlpha = 1;
  }

  /** Write points, or all of them, into the canvas's pixels. */
  #drawImage(points, palette, ratio) {
    const { canvas, context, places, colours } = this;
    const { width, height } = canvas;
    if (this.#image?.width !== width || this.#image?.height !== height) this.#image = context.createImageData(width, height);
    const pixels = new Uint32Array(this.#image.data.buffer);
    pixels.fill(0);
    const alpha = this.hits.length ? 0x70 : 0xb8;
    const inks = Uint32Array.from(palette, (colour) => {
      const value = Number.parseInt(colour.slice(1), 16);
      return (alpha << 24) | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16); // little-endian RGBA
    });
    const [sx, sy] = this.#scales().map((scale) => scale * ratio);
    const left = width / 2 - this.center[0] * sx;
    const top = height / 2 + this.center[1] * sy;
    const size = Math.max(1, Math.round((this.zoom > 3 ? 2.5 : 1.5) * ratio));
    const count = points ? points.length : this.count;
    const last = palette.length - 1;
    for (let at = 0; at < count; at += 1) {
      const point = points ? points[at] : at;
      const px = (left + places[2 * point] * sx) | 0;
      const py = (top - places[2 * point + 1] * sy) | 0;
      if (px < 0 || py < 0 || px + size > width || py + size > height) continue;
      const ink = inks[colours ? Math.min(colours[point], last) : 0];
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
    if (this.question) {
      const from = this.positionOf(...this.question);
      context.strokeStyle = ink;
      context.globalAlpha = 0.25;
      context.lineWidth = 1;
      context.beginPath();
      for (const point of this.hits.slice(0, 10)) {
        context.moveTo(...from);
        context.lineTo(...this.positionOf(this.places[2 * point], this.places[2 * point + 1]));
      }
      context.stroke();
      context.globalAlpha = 1;
    }
    this.hits.toReversed().forEach((point, at) => {
      const rank = this.hits.length - 1 - at;
      const [px, py] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      context.beginPath();
      context.arc(px, py, 6, 0, 2 * Math.PI);
      context.fillStyle = rank < 10 ? ink : "transparent";
      context.fill();
      context.lineWidth = 1.5;
      context.strokeStyle = rank < 10 ? style.getPropertyValue("--surface") : ink;
      context.globalAlpha = rank < 10 ? 1 : 0.35;
      context.stroke();
      context.globalAlpha = 1;
    });
    if (this.question) {
      const [px, py] = this.positionOf(...this.question);
      context.fillStyle = style.getPropertyValue("--accent");
      context.beginPath();
      for (let corner = 0; corner < 8; corner += 1) {
        const length = corner % 2 ? 4 : 11;
        const turn = (corner * Math.PI) / 4;
        context.lineTo(px + length * Math.sin(turn), py - length * Math.cos(turn));
      }
      context.fill();
      names.draw("your question", px, py - 20, { weight: 600, must: true });
    }
    this.hits.slice(0, 10).forEach((point) => {
      const title = this.titles.get(point)?.title;
      const [px, py] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      if (title) names.draw(shortened(title), px, py + 16, { weight: 550 });
    });
  }

  #drawTitles(visible, names) {
    if (!visible?.length || visible.length > NAMED_POINTS) return;
    const missing = visible.filter((point) => !this.titles.has(point));
    if (missing.length) this.needTitles(missing);
    for (const point of visible) {
      const title = this.titles.get(point)?.title;
      const [px, py] = this.positionOf(this.places[2 * point], this.places[2 * point + 1]);
      if (title) names.draw(shortened(title), px, py + 14, { size: 12 });
    }
  }

  #drawRegions(names) {
    const level = this.zoom < 2.2 ? 0 : this.zoom < 6 ? 1 : 2;
    const levels = new Set(this.regions.map((region) => region.level));
    const shown = levels.has(level) ? level : Math.max(...levels);
    for (const region of this.regions.filter((each) => each.level === shown).sort((one, other) => other.documents - one.documents)) {
      const [px, py] = this.positionOf(region.x, region.y);
      names.draw(region.terms.join(" · "), px, py, { size: shown ? 13 : 15, weight: 650, muted: true });
    }
  }
}

/** Writes names with a halo, none over another. */
class Names {
  #taken = [];

  constructor(context, style) {
    this.context = context;
    this.font = style.fontFamily;
    this.ink = style.getPropertyValue("--ink");
    this.muted = style.getPropertyValue("--muted");
    this.halo = style.getPropertyValue("--surface");
  }

  draw(text, px, py, { size = 13, weight = 400, must = false, muted = false } = {}) {
    const { context } = this;
    context.font = `${weight} ${size}px ${this.font}`;
    const half = context.measureText(text).width / 2 + 4;
    const box = [px - half, py - size / 2 - 3, px + half, py + size / 2 + 3];
    if (!must && this.#taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) return;
    this.#taken.push(box);
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = this.halo;
    context.strokeText(text, px, py);
    context.fillStyle = muted ? this.muted : this.ink;
    context.fillText(text, px, py);
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

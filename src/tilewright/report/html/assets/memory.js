// Each memory as a map: address upwards, statements from left to right, one box for each tile while it is alive.

tw.MemoryMap = class {
  static LEFT = 64;
  static BOTTOM = 22;
  static TOP = 10;

  constructor(func, memory) {
    this.func = func;
    this.memory = memory;
    this.end = Math.max(1, func.statements);
    this.tiles = memory.buffers.flatMap((buffer) =>
      func.tiles.filter((tile) => tile.buffer === buffer.name && tile.memory === memory.memory && tile.address !== null)
        .map((tile) => ({ ...tile, room: buffer.nbytes })));
    // Long lives first, so that a short one inside a long one lies on top and can be pointed at.
    this.tiles.sort((a, b) => b.last - b.first - (a.last - a.first) || a.address - b.address);
    this.box = tw.el("div");
    this.node = tw.el("figure", {}, this.caption(), this.box);
    this.node.map = this;
  }

  caption() {
    const { memory, spaces, peak, capacity } = this.memory;
    const name = spaces.join("/") === memory ? memory : `${memory} (${spaces.join(", ")})`;
    if (!this.tiles.length) {
      return tw.el("figcaption", {}, tw.el("b", {}, name), tw.el("span", { class: "soft" }, "tiles are streamed through registers"));
    }
    const share = peak / capacity;
    return tw.el("figcaption", {},
      tw.el("b", {}, name),
      tw.el("span", { class: "gauge" }, tw.el("span", { style: `width:${Math.min(100, 100 * share)}%` })),
      tw.el("span", { class: "soft" }, `${tw.bytes(peak)} of ${tw.bytes(capacity)}, ${tw.percent(share)}`));
  }

  height() {
    const levels = new Set(this.tiles.map((tile) => tile.address)).size;
    return Math.min(320, Math.max(64, 30 * levels)) + tw.MemoryMap.BOTTOM + tw.MemoryMap.TOP;
  }

  draw(width) {
    if (!this.tiles.length) return;
    const { LEFT, BOTTOM, TOP } = tw.MemoryMap, height = this.height(), right = width - 4;
    const x = (statement) => LEFT + ((statement - 1) / this.end) * (right - LEFT); // its left edge
    const y = (address) => TOP + (1 - address / this.memory.peak) * (height - TOP - BOTTOM);
    const marks = [];
    const heights = [...new Set(this.tiles.flatMap((tile) => [tile.address, tile.address + tile.room]))].sort((a, b) => a - b);
    let last = Infinity;
    for (const address of heights) {
      marks.push(tw.svg("line", { class: "grid", x1: LEFT, x2: right, y1: y(address), y2: y(address) }));
      if (last - y(address) < 13) continue;
      last = y(address);
      marks.push(tw.svg("text", { x: LEFT - 6, y: last + 4, "text-anchor": "end" }, `0x${address.toString(16)}`));
    }
    const step = Math.max(1, tw.step(this.end, (right - LEFT) / 70));
    for (let at = step; at <= this.end; at += step) {
      if (x(at + 0.5) < right - 8) marks.push(tw.svg("text", { x: x(at + 0.5), y: height - 6, "text-anchor": "middle" }, tw.number(at)));
    }
    marks.push(tw.svg("text", { x: LEFT - 6, y: height - 6, "text-anchor": "end" }, "statement"));
    this.drawn = this.tiles.map((tile, i) => this.tile(tile, i, x, y));
    this.box.replaceChildren(tw.svg("svg", {
      viewBox: `0 0 ${width} ${height}`, height, role: "group",
      "aria-label": `Map of ${this.memory.memory} in ${this.func.name}: ${tw.plural(this.tiles.length, "tile")}; arrow keys go from tile to tile`,
      onkeydown: (event) => this.key(event),
    }, marks, this.drawn));
  }

  tile(tile, index, x, y) {
    // From the middle of the statement that makes it to the middle of the last that reads it: what takes its place there
    // begins where it ends.
    const left = x(tile.first + 0.5), wide = Math.max(3, x(tile.last + 0.5) - left);
    const top = y(tile.address + tile.room), high = Math.max(3, y(tile.address) - top);
    const box = tw.svg("rect", {
      class: "tile", x: left, y: top, width: wide, height: high, rx: 3, tabindex: index ? -1 : 0, role: "img",
      fill: `var(--e${this.colour(tile)})`, "fill-opacity": 0.9, "aria-label": this.describe(tile).lines.filter(Boolean).join("; "),
      "data-tile": tile.name,
      onpointermove: (event) => this.tell(tile, event.clientX, event.clientY),
      onpointerleave: () => tw.tip.hide(),
      onclick: (event) => this.tell(tile, event.clientX, event.clientY),
      onfocus: (event) => {
        const { lines, code } = this.describe(tile);
        if (event.target.matches(":focus-visible")) tw.tip.showAt(event.target, lines[0], lines.slice(1), code);
      },
      onblur: () => tw.tip.hide(),
    });
    const room = Math.floor((wide - 8) / 7), fits = room >= 2 && high >= 13;
    const words = tile.name.length > room ? `${tile.name.slice(0, room - 1)}…` : tile.name;
    return tw.svg("g", {}, box, fits ? tw.svg("text", { class: "label", x: left + 5, y: Math.min(top + 13, top + high - 3) }, words) : null);
  }

  // Neighbours by address, and what follows in one buffer, look different.
  colour(tile) {
    const order = [...new Set(this.memory.buffers.map((buffer) => buffer.name))];
    const buffer = order.indexOf(tile.buffer);
    const inside = this.tiles.filter((other) => other.buffer === tile.buffer && other.first < tile.first).length;
    return (buffer * 3 + inside) % 7;
  }

  describe(tile) {
    const occupied = tile.room > tile.nbytes ? `${tw.number(tile.nbytes)} bytes in a buffer of ${tw.number(tile.room)}` : `${tw.number(tile.nbytes)} bytes`;
    return {
      code: tw.sourceLine(tile.file, tile.line),
      lines: [
        `${tile.name}: ${tile.shape} ${tile.dtype}` + (tile.valid ? `, valid ${tile.valid}` : ""),
        `${occupied} at 0x${tile.address.toString(16)} of ${tile.memory}`,
        `${tw.where(tile.file, tile.line)} · made by ${tile.made_by} · statements ${tile.first} to ${tile.last}`,
        tile.why,
      ],
    };
  }

  tell(tile, x, y) {
    const { lines, code } = this.describe(tile);
    tw.tip.show(x, y, lines[0], lines.slice(1), code);
  }

  key(event) {
    const direction = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const boxes = this.drawn.map((group) => group.firstChild);
    const order = this.tiles.map((_, i) => i).sort((a, b) => this.tiles[a].first - this.tiles[b].first || this.tiles[a].address - this.tiles[b].address);
    const here = order.indexOf(boxes.indexOf(document.activeElement));
    const next = boxes[order[(here + direction + order.length) % order.length]];
    for (const box of boxes) box.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
  }

  light(name) {
    this.drawn?.forEach((group, i) => group.firstChild.classList.toggle("lit", this.tiles[i].name === name));
  }
};

tw.memory = (root, functions) => {
  const maps = [];
  for (const func of functions.filter((item) => item.memories.length)) {
    const own = func.memories.map((memory) => new tw.MemoryMap(func, memory));
    maps.push(...own);
    root.append(
      tw.el("h3", {}, func.name, tw.el("span", { class: "soft" }, func.core ? ` on the ${func.core} cores` : "")),
      tw.el("div", { class: "maps" }, own.map((map) => map.node)));
  }
  if (!maps.length) root.append(tw.el("p", { class: "soft" }, "No function of this program keeps tiles in a memory."));
  for (const map of maps) tw.whenSized(map.box, (width) => map.draw(width));
  document.addEventListener("statement", ({ detail }) => maps.forEach((map) => map.light(map.func.name === detail.function ? detail.makes : null)));
};

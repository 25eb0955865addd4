// What each engine of each core does when. Drawn on a canvas, since there may be tens of thousands of statements.

tw.Timeline = class {
  static TRACK = 24;
  static HEAD = 22;
  static AXIS = 24;
  static BAND = 22;
  static FEW = 6;

  constructor(root, data) {
    this.data = data;
    this.from = 0;
    this.to = Math.max(1, data.cycles);
    this.chosen = null;
    this.onlyCritical = false;
    this.all = data.rows.length <= tw.Timeline.FEW;
    this.rows = data.rows.map((row) => ({ ...row, tracks: this.tracksOf(row) }));
    this.order = this.slowestFirst();
    this.canvas = tw.el("canvas", {
      tabindex: 0, role: "application", "aria-roledescription": "timeline", "aria-describedby": "timeline-keys",
      "aria-label": `Timeline of ${tw.cycles(data.cycles)} cycles`,
    });
    this.canvas.timeline = this;
    this.detail = tw.el("div", { class: "detail", "aria-live": "polite" });
    root.append(this.bar(), this.canvas, this.detail, this.keys());
    this.tell();
    this.listen();
    tw.whenSized(this.canvas, (width) => this.sized(width));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  tracksOf(row) {
    const tracks = new Map(this.data.engines.map((engine) => [engine, []]));
    row.what.forEach((number, entry) => tracks.get(this.data.statements[number].engine).push(entry));
    return [...tracks].filter(([, entries]) => entries.length).map(([engine, entries]) => ({ engine, entries }));
  }

  // Rows with part of the critical path, then those that end last.
  slowestFirst() {
    const weight = (row) => [row.critical.reduce((a, b) => a + b, 0), row.end.length ? row.end.at(-1) : 0];
    const weights = this.rows.map(weight);
    return this.rows.map((_, i) => i).sort((a, b) => weights[b][0] - weights[a][0] || weights[b][1] - weights[a][1] || a - b);
  }

  shown() {
    return this.all ? this.rows.map((_, i) => i) : this.order.slice(0, tw.Timeline.FEW).sort((a, b) => a - b);
  }

  bar() {
    const button = (text, label, act) => tw.el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const critical = tw.el("button", {
      type: "button", "aria-pressed": "false",
      onclick: () => {
        this.onlyCritical = !this.onlyCritical;
        critical.setAttribute("aria-pressed", String(this.onlyCritical));
        this.draw();
      },
    }, "Critical path");
    const hidden = this.rows.length - tw.Timeline.FEW;
    const more = hidden <= 0 ? null : tw.el("button", {
      type: "button", "aria-expanded": "false",
      onclick: () => {
        this.all = !this.all;
        more.textContent = this.all ? "Show fewer rows" : `Show ${hidden} more rows`;
        more.setAttribute("aria-expanded", String(this.all));
        this.sized(this.width);
      },
    }, `Show ${hidden} more rows`);
    return tw.el("div", { class: "bar" },
      tw.el("div", { class: "legend grow" }, this.data.engines.map((engine) =>
        tw.el("span", {}, tw.el("i", { style: `background:${tw.engineColour(engine)}` }), engine))),
      more, critical,
      button("−", "Zoom out", () => this.zoom(2)), button("+", "Zoom in", () => this.zoom(0.5)),
      button("Fit", "Show all of it", () => this.view(0, this.data.cycles)));
  }

  keys() {
    const left = this.data.left_out;
    return tw.el("p", { class: "note", id: "timeline-keys" },
      "Drag to move, pinch or Ctrl + wheel to zoom, double click to zoom in. Keys: ← → statement, ↑ ↓ engine, W what it waited for, + − zoom, 0 all.",
      left ? ` Not drawn: the last ${tw.number(left)} of ${tw.number(this.data.executions)} statements, cores that do the same counted once each.` : "");
  }

  // --- geometry ---
  sized(width) {
    this.width = width;
    this.small = width < 560 ? 10 : 11;
    this.font = getComputedStyle(document.body).fontFamily;
    this.pen = this.canvas.getContext("2d");
    this.gutter = 10 + Math.max(46, ...this.data.engines.map((engine) => this.measure(engine, this.small)));
    this.lines = [];
    let y = tw.Timeline.AXIS + (this.data.launches.length ? tw.Timeline.BAND + 4 : 0);
    for (const index of this.shown()) {
      this.lines.push({ row: index, head: y });
      y += tw.Timeline.HEAD;
      for (const track of this.rows[index].tracks) {
        this.lines.push({ row: index, track, y });
        y += tw.Timeline.TRACK;
      }
      y += 8;
    }
    this.height = y;
    this.canvas.style.height = `${y}px`;
    this.draw();
  }

  x(time) {
    return this.gutter + ((time - this.from) / (this.to - this.from)) * (this.width - this.gutter);
  }

  time(x) {
    return this.from + ((x - this.gutter) / (this.width - this.gutter)) * (this.to - this.from);
  }

  view(from, to) {
    const span = Math.min(Math.max(to - from, 8), Math.max(8, this.data.cycles));
    this.from = Math.max(0, Math.min(from, this.data.cycles - span));
    this.to = this.from + span;
    this.draw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.view(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  // The first entry of a track that ends after `time`.
  after(row, entries, time) {
    let low = 0, high = entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.end[entries[middle]] > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  hit(x, y) {
    const line = this.lines.find((item) => item.track && y >= item.y && y < item.y + tw.Timeline.TRACK);
    if (!line || x < this.gutter) return null;
    const row = this.rows[line.row], entries = line.track.entries, slack = (2 * (this.to - this.from)) / this.width;
    const at = this.time(x), position = this.after(row, entries, at - slack), entry = entries[position];
    return entry !== undefined && row.start[entry] <= at + slack ? { row: line.row, entry } : null;
  }

  // Where a statement is drawn, in the page's coordinates.
  locate({ row, entry }) {
    const engine = this.statement({ row, entry }).engine;
    const line = this.lines.find((item) => item.track && item.row === row && item.track.engine === engine);
    if (!line) return null;
    const box = this.canvas.getBoundingClientRect(), what = this.rows[row];
    return { x: box.left + this.x((what.start[entry] + what.end[entry]) / 2), y: box.top + line.y + tw.Timeline.TRACK / 2 };
  }

  statement({ row, entry }) {
    return this.data.statements[this.rows[row].what[entry]];
  }

  // --- drawing ---
  draw() {
    if (!this.width) return;
    const ratio = this.height > 5000 ? 1 : devicePixelRatio || 1;
    this.canvas.width = this.width * ratio;
    this.canvas.height = this.height * ratio;
    this.pen.scale(ratio, ratio);
    const colours = ["ink", "soft", "line", "grid", "card", "mark", "on-engine", "idle", "faint"];
    this.colour = Object.fromEntries(colours.map((name) => [name, tw.style(`--${name}`)]));
    this.engineColours = new Map(this.data.engines.map((engine, i) => [engine, tw.style(`--e${i % 8}`)]));
    this.axis();
    this.launches();
    for (const line of this.lines) line.track ? this.track(line) : this.head(line);
    this.arrow();
  }

  text(words, x, y, colour, size = 11.5, weight = "") {
    this.pen.fillStyle = this.colour[colour] ?? colour;
    this.pen.font = `${weight} ${size}px ${this.font}`;
    this.pen.fillText(words, x, y);
  }

  axis() {
    const step = tw.step(this.to - this.from, (this.width - this.gutter) / 90);
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = Math.round(this.x(at)) + 0.5, words = tw.cycles(at);
      this.pen.strokeStyle = this.colour.grid;
      this.pen.beginPath();
      this.pen.moveTo(x, tw.Timeline.AXIS - 6);
      this.pen.lineTo(x, this.height);
      this.pen.stroke();
      this.text(words, Math.min(x - 2, this.width - 8 * words.length), 12, "soft", 11);
    }
    this.text("cycles", 2, 12, "soft", 11);
  }

  launches() {
    const y = tw.Timeline.AXIS;
    this.data.launches.forEach((launch, index) => {
      const left = Math.max(this.gutter, this.x(launch.start)), right = Math.min(this.width, this.x(launch.start + launch.cycles));
      if (right <= left) return;
      this.pen.fillStyle = this.colour[index % 2 ? "grid" : "idle"];
      this.pen.fillRect(left, y, right - left, tw.Timeline.BAND);
      const words = `${launch.name} · ${tw.plural(launch.blocks, launch.core === "cluster" ? "cluster" : "core")}`;
      this.fitting(right - left > 11 + this.measure(words) ? words : launch.name, left, right, y + 15, "soft");
    });
  }

  // Text in a box; none where it has no room.
  fitting(words, left, right, y, colour) {
    if (right - left > 9 + this.measure(words)) this.text(words, left + 4, y, colour, 11);
  }

  measure(words, size = 11) {
    this.pen.font = `${size}px ${this.font}`;
    return this.pen.measureText(words).width;
  }

  head({ row, head }) {
    const { core, cores } = this.rows[row];
    this.text(core, 2, head + 15, "ink", 12, "600");
    if (cores > 1) {
      const width = this.pen.measureText(core).width;
      this.text(`${cores} that do the same`, width + 12, head + 15, "soft", 11);
    }
  }

  track({ row, track, y }) {
    const data = this.rows[row], pen = this.pen, height = tw.Timeline.TRACK - 3;
    this.text(track.engine, 2, y + 15, "soft", this.small);
    pen.fillStyle = this.colour.idle;
    pen.fillRect(this.gutter, y, this.width - this.gutter, height);
    let drawn = -1;
    for (let i = this.after(data, track.entries, this.from); i < track.entries.length; i++) {
      const entry = track.entries[i];
      if (data.start[entry] > this.to) break;
      const left = Math.max(this.gutter, this.x(data.start[entry])), right = Math.min(this.width, this.x(data.end[entry]));
      if (right <= this.gutter || right - drawn < 0.4) continue;
      drawn = right;
      const width = Math.max(right - left, 1);
      pen.globalAlpha = this.onlyCritical && !data.critical[entry] ? 0.18 : 1;
      pen.fillStyle = this.engineColours.get(track.engine);
      pen.fillRect(left, y, width > 3 ? width - 0.75 : width, height);
      if (data.critical[entry] && this.onlyCritical) {
        pen.fillStyle = this.colour.mark;
        pen.fillRect(left, y + height - 3, width, 3);
      }
      if (width > 24) this.fitting(this.data.statements[data.what[entry]].op, left, right, y + 15, "on-engine");
      pen.globalAlpha = 1;
    }
    if (this.chosen && this.chosen.row === row && this.statement(this.chosen).engine === track.engine) this.frame(this.chosen, y, height);
  }

  frame({ row, entry }, y, height) {
    const left = this.x(this.rows[row].start[entry]), right = this.x(this.rows[row].end[entry]);
    if (right < this.gutter) return;
    this.pen.strokeStyle = this.colour.ink;
    this.pen.lineWidth = 2;
    this.pen.strokeRect(Math.max(this.gutter, left), y + 1, Math.max(2, right - Math.max(this.gutter, left)), height - 2);
    this.pen.lineWidth = 1;
  }

  // From what let the chosen statement start to its start.
  arrow() {
    const cause = this.chosen && this.rows[this.chosen.row].cause[this.chosen.entry];
    if (!this.chosen || cause < 0) return;
    const before = { row: this.chosen.row, entry: cause };
    if (this.statement(before).engine === this.statement(this.chosen).engine) return;
    const box = this.canvas.getBoundingClientRect(), from = this.locate(before), to = this.locate(this.chosen);
    if (!from || !to) return;
    const x1 = this.x(this.rows[before.row].end[cause]) - 2, x2 = this.x(this.rows[before.row].start[this.chosen.entry]) + 2;
    if (x2 < this.gutter) return;
    const y1 = from.y - box.top, y2 = to.y - box.top, pen = this.pen;
    pen.strokeStyle = pen.fillStyle = this.colour.mark;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
    const turn = Math.atan2(y2 - y1, x2 - x1);
    pen.beginPath();
    pen.moveTo(x2, y2);
    for (const side of [-0.45, 0.45]) pen.lineTo(x2 - 9 * Math.cos(turn + side), y2 - 9 * Math.sin(turn + side));
    pen.fill();
    pen.lineWidth = 1;
  }

  // --- words ---
  describe(item) {
    const row = this.rows[item.row], what = this.statement(item), start = row.start[item.entry], end = row.end[item.entry];
    const cause = row.cause[item.entry], waits = cause >= 0 ? this.statement({ row: item.row, entry: cause }) : null;
    return {
      title: `${what.op} → ${what.makes}`,
      code: tw.sourceLine(what.file, what.line),
      lines: [
        `${tw.where(what.file, what.line)} · ${what.engine}, ${row.core}`,
        `${tw.cycles(start)} to ${tw.cycles(end)}: ${tw.number(end - start)} cycles` +
          (row.slowed[item.entry] ? `, ${tw.number(row.slowed[item.entry])} of them lost to shared DDR` : ""),
        what.edge ? `${what.edge.join(" → ")}, ${tw.bytes(what.bytes)}` : "",
        waits && waits.engine !== what.engine
          ? `waited for ${waits.op} on ${waits.engine}` + (what.waits[waits.engine] ? ` (${what.waits[waits.engine]})` : "") : "",
        row.critical[item.entry] ? "on the critical path" : "",
      ],
    };
  }

  tell() {
    if (!this.chosen) {
      this.detail.replaceChildren(tw.el("span", { class: "soft" }, "Point at a statement, tap it, or press an arrow key in the timeline."));
      return;
    }
    const { title, lines, code } = this.describe(this.chosen);
    const cause = this.rows[this.chosen.row].cause[this.chosen.entry];
    this.detail.replaceChildren(
      tw.el("b", {}, title), " ", tw.el("span", { class: "soft" }, lines.filter(Boolean).join(" · ")),
      ...(cause >= 0 ? [tw.el("button", { type: "button", onclick: () => this.follow() }, "What it waited for")] : []),
      ...(code ? [tw.el("div", { class: "code" }, code)] : []));
  }

  choose(item, reveal = false) {
    this.chosen = item;
    if (item && reveal) {
      const { start, end } = this.rows[item.row], margin = (this.to - this.from) * 0.1;
      if (end[item.entry] > this.to) this.view(end[item.entry] + margin - (this.to - this.from), end[item.entry] + margin);
      if (start[item.entry] < this.from) this.view(start[item.entry] - margin, start[item.entry] - margin + (this.to - this.from));
    }
    this.tell();
    this.draw();
    if (item) document.dispatchEvent(new CustomEvent("statement", { detail: this.statement(item) }));
  }

  follow() {
    const cause = this.chosen ? this.rows[this.chosen.row].cause[this.chosen.entry] : -1;
    if (cause >= 0) this.choose({ row: this.chosen.row, entry: cause }, true);
  }

  // --- input ---
  listen() {
    const at = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const pointers = new Map();
    let moved = 0;
    this.canvas.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, event.clientX);
      this.canvas.setPointerCapture(event.pointerId);
      moved = 0;
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event), last = pointers.get(event.pointerId);
      if (last === undefined) {
        const found = this.hit(x, y);
        if (!found) return tw.tip.hide();
        const { title, lines, code } = this.describe(found);
        return tw.tip.show(event.clientX, event.clientY, title, lines, code);
      }
      tw.tip.hide();
      pointers.set(event.pointerId, event.clientX);
      moved += Math.abs(event.clientX - last);
      if (pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const before = Math.abs(last - other), now = Math.abs(event.clientX - other);
        if (before > 4 && now > 4) this.zoom(before / now, this.time((event.clientX + other) / 2 - this.canvas.getBoundingClientRect().left));
      } else if (moved > 3) {
        const shift = this.time(last) - this.time(event.clientX);
        this.view(this.from + shift, this.to + shift);
      }
    });
    const up = (event) => {
      if (pointers.delete(event.pointerId) && event.type === "pointerup" && moved <= 3) this.choose(this.hit(...at(event)));
    };
    this.canvas.addEventListener("pointerup", up);
    this.canvas.addEventListener("pointercancel", up);
    this.canvas.addEventListener("pointerleave", () => tw.tip.hide());
    this.canvas.addEventListener("dblclick", (event) => this.zoom(0.4, this.time(at(event)[0])));
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY / 300), this.time(at(event)[0]));
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const act = {
      ArrowRight: () => this.along(1), ArrowLeft: () => this.along(-1), ArrowDown: () => this.across(1),
      ArrowUp: () => this.across(-1), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      0: () => this.view(0, this.data.cycles), w: () => this.follow(), W: () => this.follow(),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  }

  // The next or the last statement of this engine; the first of all where none is chosen.
  along(direction) {
    const tracks = this.lines.filter((line) => line.track);
    if (!tracks.length) return;
    if (!this.chosen) return this.choose({ row: tracks[0].row, entry: tracks[0].track.entries[0] }, true);
    const { entries } = this.rows[this.chosen.row].tracks.find((track) => track.engine === this.statement(this.chosen).engine);
    const next = entries[entries.indexOf(this.chosen.entry) + direction];
    if (next !== undefined) this.choose({ row: this.chosen.row, entry: next }, true);
  }

  // To the engine above or below, at the same moment.
  across(direction) {
    if (!this.chosen) return this.along(1);
    const tracks = this.lines.filter((line) => line.track), engine = this.statement(this.chosen).engine;
    const here = tracks.findIndex((line) => line.row === this.chosen.row && line.track.engine === engine);
    const next = tracks[here + direction];
    if (!next) return;
    const row = this.rows[next.row], time = this.rows[this.chosen.row].start[this.chosen.entry];
    const position = Math.min(this.after(row, next.track.entries, time), next.track.entries.length - 1);
    this.choose({ row: next.row, entry: next.track.entries[position] }, true);
  }
};

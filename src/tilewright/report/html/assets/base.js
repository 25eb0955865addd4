// What the parts of the page share: the data, elements, numbers in words, colours, and the one tooltip.

const tw = { data: JSON.parse(document.getElementById("data").textContent) };

// An element with attributes and children; a null child is left out, text is text and never markup.
tw.el = (tag, attributes = {}, ...children) => tw.fill(document.createElement(tag), attributes, children);
tw.svg = (tag, attributes = {}, ...children) =>
  tw.fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
tw.fill = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
};

tw.body = (section) => document.querySelector(`#${section} .body`);
tw.number = (value) => value.toLocaleString("en-US", { maximumFractionDigits: value < 10 ? 2 : 0 });
tw.cycles = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 0 });
tw.percent = (share) => (share > 0 && share < 0.01 ? "<1 %" : `${Math.round(100 * share)} %`);
tw.bytes = (count) => {
  if (count < 1024) return `${tw.number(count)} B`;
  const power = Math.min(3, Math.floor(Math.log2(count) / 10));
  const value = count / 1024 ** power;
  return `${value.toLocaleString("en-US", { maximumSignificantDigits: Math.max(3, String(Math.floor(value)).length) })} ${["", "KiB", "MiB", "GiB"][power]}`;
};
tw.plural = (count, one, many = `${one}s`) => `${tw.number(count)} ${count === 1 ? one : many}`;

// Engines have the same colour everywhere: their place among the target's engines that do something here.
tw.engines = tw.data.timeline ? tw.data.timeline.engines : [];
tw.engineColour = (engine) => `var(--e${Math.max(0, tw.engines.indexOf(engine)) % 8})`;
tw.style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

tw.baseName = (file) => file.split("/").pop();
tw.sourceLine = (file, line) => {
  const found = tw.data.files[file];
  return found ? (found.lines[line - found.first] ?? "").trim() : "";
};
tw.where = (file, line) => (line ? `${tw.baseName(file)}:${line}` : "made by the compiler");

// A first line in bold, then lines, then code. Where an element has the focus, it is told beside that (`about`), and moves
// with it.
tw.tip = {
  node: document.getElementById("tip"),
  about: null,
  show(x, y, title, lines, code) {
    this.about = null;
    this.node.replaceChildren(
      tw.el("b", {}, title),
      ...lines.filter(Boolean).map((line) => tw.el("div", {}, line)),
      ...(code ? [tw.el("span", { class: "code" }, code)] : []),
    );
    this.node.hidden = false;
    this.place(x, y);
  },
  showAt(element, title, lines, code) {
    this.show(0, 0, title, lines, code);
    this.about = element;
    this.follow();
  },
  follow() {
    const at = this.about.getBoundingClientRect();
    this.place(at.left + at.width / 2, at.bottom - 8);
  },
  place(x, y) {
    const box = this.node.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth - 8 ? x - box.width - 14 : x + 14;
    const top = y + 16 + box.height > innerHeight - 8 ? y - box.height - 12 : y + 16;
    this.node.style.left = `${Math.min(Math.max(8, left), Math.max(8, innerWidth - box.width - 8))}px`;
    this.node.style.top = `${Math.max(8, top)}px`;
  },
  hide() {
    this.node.hidden = true;
  },
};
addEventListener("scroll", () => (tw.tip.about && !tw.tip.node.hidden ? tw.tip.follow() : tw.tip.hide()), { passive: true });
addEventListener("keydown", (event) => event.key === "Escape" && tw.tip.hide());

// Calls `draw` with the width of `node` now and whenever that changes.
tw.whenSized = (node, draw) => {
  let last = 0;
  const check = () => {
    const width = Math.floor(node.clientWidth);
    if (width && width !== last) draw((last = width));
  };
  new ResizeObserver(check).observe(node);
  check();
};

// A table in a box that scrolls sideways. Columns: [title, kind], where the kind "n" is a number, "code" code, and "wrap"
// text of several lines. A column with nothing in it is left out.
tw.table = (columns, rows, label) => {
  const kept = columns.map((_, i) => i).filter((i) => !rows.length || rows.some((row) => row[i] !== ""));
  const heads = kept.map((i) => tw.el("th", { class: columns[i][1] ?? "", scope: "col" }, columns[i][0]));
  const lines = rows.map((row) => tw.el("tr", {}, kept.map((i) => tw.el("td", { class: columns[i][1] ?? "" }, [row[i]].flat()))));
  return tw.el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    tw.el("table", {}, tw.el("thead", {}, tw.el("tr", {}, heads)), tw.el("tbody", {}, lines)));
};

// A round step of an axis that has about `count` of them.
tw.step = (range, count) => {
  const rough = range / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
};

// The program after any two passes, line beside line.

tw.Compare = class {
  static AROUND = 3;
  static MOST_EDITS = 3000;

  constructor(root, stages) {
    let text = "";
    this.stages = stages.map((stage) => ({ ...stage, text: (text = stage.text ?? text) }));
    const options = () => this.stages.map((stage, i) => tw.el("option", { value: i }, `after ${stage.name}`));
    this.before = tw.el("select", { "aria-label": "Program on the left", onchange: () => this.draw() }, options());
    this.after = tw.el("select", { "aria-label": "Program on the right", onchange: () => this.draw() }, options());
    this.strip = tw.el("ol", { class: "passes", "aria-label": "Passes in order; each shows what it changed" }, this.stages.slice(1).map((stage, i) =>
      tw.el("li", {}, tw.el("button", {
        type: "button", class: stage.changed ? "" : "same", title: stage.changed ? `What ${stage.name} changed` : `${stage.name} changed nothing`,
        onclick: () => this.show(i, i + 1),
      }, stage.name))));
    this.out = tw.el("div", { class: "diff" });
    this.count = tw.el("span", { class: "soft" });
    root.append(this.strip, tw.el("div", { class: "bar" }, this.before, "→", this.after, this.count), this.out);
    const spaces = this.stages.findIndex((stage) => stage.name === "infer_spaces" && stage.changed);
    const last = this.stages.findLastIndex((stage, i) => i && stage.changed);
    const start = spaces > 0 ? spaces : last > 0 ? last : this.stages.length - 1;
    this.show(Math.max(0, start - 1), start);
  }

  show(before, after) {
    this.before.value = before;
    this.after.value = after;
    this.draw();
  }

  draw() {
    const [i, j] = [Number(this.before.value), Number(this.after.value)];
    [...this.strip.querySelectorAll("button")].forEach((button, at) => button.setAttribute("aria-pressed", String(j === i + 1 && at === i)));
    const lines = (stage) => stage.text.replace(/\n$/, "").split("\n");
    const rows = tw.Compare.rows(lines(this.stages[i]), lines(this.stages[j]));
    const changed = rows.filter((row) => row.kind === "changed");
    const removed = changed.filter((row) => row.left !== null).length, added = changed.filter((row) => row.right !== null).length;
    this.count.textContent = changed.length ? `${tw.plural(removed, "line")} replaced by ${tw.number(added)}` : "the same program";
    this.out.replaceChildren(
      tw.el("div", { class: "row titles" }, tw.el("span", {}, this.stages[i].name), tw.el("span", {}, this.stages[j].name)),
      ...this.folded(rows, changed.length === 0));
  }

  // Long runs of equal lines become a button that shows them.
  folded(rows, open) {
    const nodes = [], around = tw.Compare.AROUND;
    for (let i = 0; i < rows.length;) {
      let end = i;
      while (end < rows.length && rows[end].kind === "equal") end++;
      const head = i === 0 ? 1 : around, tail = end === rows.length ? 0 : around;
      if (!open && end - i > head + tail + 2) {
        const hidden = rows.slice(i + head, end - tail);
        nodes.push(...rows.slice(i, i + head).map(tw.Compare.row));
        nodes.push(tw.el("button", {
          type: "button", class: "fold", onclick: (event) => event.currentTarget.replaceWith(...hidden.map(tw.Compare.row)),
        }, `… ${hidden.length} equal lines`));
        i = end - tail;
      }
      while (i < end) nodes.push(tw.Compare.row(rows[i++]));
      if (i < rows.length) nodes.push(tw.Compare.row(rows[i++]));
    }
    return nodes;
  }

  static row({ kind, left, right }) {
    if (kind === "equal") return tw.el("div", { class: "row" }, tw.el("span", { class: "left-equal" }, left || " "), tw.el("span", {}, right || " "));
    const [a, b] = left !== null && right !== null ? tw.Compare.words(left, right) : [[left], [right]];
    const side = (parts, name) => parts[0] === null ? tw.el("span", { class: "none" }) : tw.el("span", { class: name }, parts);
    return tw.el("div", { class: "row" }, side(a, "removed"), side(b, "added"));
  }

  // What is between the first and the last character that differ is marked, in whole words.
  static words(left, right) {
    const word = /[\w.]/;
    let head = 0;
    while (head < Math.min(left.length, right.length) && left[head] === right[head]) head++;
    while (head > 0 && word.test(left[head - 1])) head--;
    let tail = 0;
    while (tail < Math.min(left.length, right.length) - head && left.at(-1 - tail) === right.at(-1 - tail)) tail++;
    while (tail > 0 && word.test(left.at(-tail))) tail--;
    const cut = (text) => [text.slice(0, head), tw.el("mark", {}, text.slice(head, text.length - tail)), text.slice(text.length - tail)];
    return [cut(left), cut(right)];
  }

  // Rows of equal and changed lines; changed lines stand beside each other as far as they go.
  static rows(a, b) {
    const rows = [], removed = [], added = [];
    const changed = (left, right) => rows.push({ kind: "changed", left, right });
    const flush = () => {
      // Lines that make the same value stand beside each other; else as they come.
      const made = (line) => line.trim().match(/^[\w, ]*\w/)?.[0];
      while (removed.length || added.length) {
        const twin = removed.length ? added.findIndex((line) => made(line) === made(removed[0])) : -1;
        const waits = added.length && removed.some((line) => made(line) === made(added[0]));
        if (twin >= 0) {
          for (const line of added.splice(0, twin)) changed(null, line);
          changed(removed.shift(), added.shift());
        } else if (removed.length && (waits || !added.length)) changed(removed.shift(), null);
        else changed(removed.shift() ?? null, added.shift());
      }
    };
    for (const [kind, line] of tw.Compare.edits(a, b)) {
      if (kind === "-") removed.push(line);
      else if (kind === "+") added.push(line);
      else {
        flush();
        rows.push({ kind: "equal", left: line, right: line });
      }
    }
    flush();
    return rows;
  }

  // The shortest list of edits (Myers' greedy search); past MOST_EDITS, all that differs in one piece.
  static edits(a, b) {
    let head = 0, tail = 0;
    while (head < Math.min(a.length, b.length) && a[head] === b[head]) head++;
    while (tail < Math.min(a.length, b.length) - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
    const equal = (lines) => lines.map((line) => [" ", line]);
    const left = a.slice(head, a.length - tail), right = b.slice(head, b.length - tail);
    return [...equal(a.slice(0, head)), ...tw.Compare.search(left, right), ...equal(a.slice(a.length - tail))];
  }

  static search(a, b) {
    const most = Math.min(a.length + b.length, tw.Compare.MOST_EDITS);
    const far = new Int32Array(2 * most + 3), at = most + 1, trail = [];
    for (let d = 0; d <= most; d++) {
      trail.push(far.slice(at - d - 1, at + d + 2));
      for (let k = -d; k <= d; k += 2) {
        let x = k === -d || (k !== d && far[at + k - 1] < far[at + k + 1]) ? far[at + k + 1] : far[at + k - 1] + 1;
        while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
        far[at + k] = x;
        if (x >= a.length && x - k >= b.length) return tw.Compare.back(a, b, trail, d);
      }
    }
    return [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])];
  }

  static back(a, b, trail, edits) {
    const found = [];
    let x = a.length, y = b.length;
    for (let d = edits; d >= 0; d--) {
      const far = (k) => trail[d][k + d + 1], k = x - y;
      const down = k === -d || (k !== d && far(k - 1) < far(k + 1));
      const before = d === 0 ? 0 : down ? far(k + 1) : far(k - 1), from = before - (d === 0 ? 0 : down ? k + 1 : k - 1);
      while (x > before && y > from && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
        found.push([" ", a[--x]]);
        y--;
      }
      if (d === 0) break;
      if (down) found.push(["+", b[--y]]); else found.push(["-", a[--x]]);
    }
    return found.reverse();
  }
};

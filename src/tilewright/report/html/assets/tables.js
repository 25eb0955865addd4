// What is told in tables: the whole, engines, the critical path, limits, source lines, choices.

tw.head = (node, data) => {
  const found = data.cycles, stat = (name, value, small) =>
    tw.el("div", {}, tw.el("dt", {}, name), tw.el("dd", {}, value, small ? tw.el("small", {}, small) : null));
  const fullest = data.functions.flatMap((func) => func.memories).filter((memory) => memory.peak)
    .sort((a, b) => b.peak / b.capacity - a.peak / a.capacity)[0];
  node.append(
    tw.el("h1", {}, data.program, " ", tw.el("small", {}, `on ${data.target}: ${data.description}`)),
    tw.el("dl", { class: "stats" },
      found ? stat("Cycles", tw.cycles(found.cycles), `${tw.plural(found.launches.length, "launch", "launches")}, ${tw.number(found.instructions)} statements run`) : null,
      found ? stat("Cycles ÷ limit", `${tw.number(found.ratio)} ×`, `bound by ${found.bound_by}`) : null,
      stat("Through DDR, one launch each", tw.bytes(data.ddr.in + data.ddr.out), `${tw.bytes(data.ddr.in)} in, ${tw.bytes(data.ddr.out)} out`),
      fullest ? stat("Fullest memory", tw.percent(fullest.peak / fullest.capacity), `${fullest.memory}: ${tw.bytes(fullest.peak)} of ${tw.bytes(fullest.capacity)}`) : null));
  if (data.unknown) node.append(tw.el("p", { class: "note" }, `No cycles: ${data.unknown}`));
};

tw.share = (parts) => tw.el("div", { class: "share", role: "img", "aria-label": parts.map((part) => part.label).join(", ") }, parts.map((part) =>
  tw.el("span", {
    style: `width:${100 * part.share}%;background:${part.colour}`,
    onpointermove: (event) => tw.tip.show(event.clientX, event.clientY, part.label, []),
    onpointerleave: () => tw.tip.hide(),
  })));

tw.enginesTable = (found) => {
  const rows = found.engines.map((use) => {
    const whole = found.cycles * use.cores, colour = tw.engineColour(use.engine);
    const parts = [{ share: use.busy / whole, colour, label: `busy ${tw.percent(use.busy / whole)}` }];
    for (const [other, cycles] of Object.entries(use.stalls)) {
      parts.push({
        share: cycles / whole, label: `waits for ${other} ${tw.percent(cycles / whole)}`,
        colour: `color-mix(in srgb, ${tw.engineColour(other)} 45%, var(--wait))`,
      });
    }
    parts.push({ share: use.idle / whole, colour: "var(--idle)", label: `nothing to do ${tw.percent(use.idle / whole)}` });
    const worst = parts.slice(1).sort((a, b) => b.share - a.share)[0];
    return [
      [tw.el("i", { class: "key", style: `background:${colour}` }), use.engine], `${use.cores} of ${use.machine} ${{ core: "", cluster: "clusters" }[use.core] ?? use.core}`,
      tw.share(parts), tw.percent(use.busy / whole), tw.cycles(use.busiest), worst.share > 0.005 ? worst.label : "",
    ];
  });
  return tw.table([["engine"], ["cores"], ["how its time goes", "wide"], ["busy", "n"], ["busiest core", "n"], ["the rest, mostly"]], rows, "Engines");
};

tw.MOST_STEPS = 12;

tw.pathTable = (found) => {
  const rows = [...found.critical_path].sort((a, b) => b.cycles - a.cycles).map((step) => [
    tw.where(step.file, step.line), step.operation.replace("tile.", ""),
    [tw.el("i", { class: "key", style: `background:${tw.engineColour(step.engine)}` }), step.engine],
    tw.number(step.times), tw.cycles(step.cycles), tw.percent(step.cycles / (found.cycles || 1)),
  ]);
  const table = (some) => tw.table([["line", "code"], ["operation", "code"], ["engine"], ["times", "n"], ["cycles", "n"], ["of all", "n"]], some, "Critical path");
  if (rows.length <= tw.MOST_STEPS + 2) return [table(rows)];
  const rest = rows.slice(tw.MOST_STEPS);
  return [table(rows.slice(0, tw.MOST_STEPS)), tw.el("details", {}, tw.el("summary", {}, `${rest.length} more`), table(rest))];
};

tw.limitsTable = (found) => {
  const rows = found.limits.map((limit) => [
    limit.name, tw.share([{ share: limit.cycles / found.cycles, colour: "var(--accent)", label: `${tw.percent(limit.cycles / found.cycles)} of the cycles` }]),
    tw.cycles(limit.cycles), tw.percent(limit.cycles / found.cycles),
  ]);
  return tw.table([["at its full rate, all the time"], ["", "wide"], ["cycles", "n"], ["of all", "n"]], rows, "Limits");
};

tw.time = (root, data) => {
  const found = data.cycles;
  if (!found) return root.append(tw.el("p", { class: "soft" }, data.unknown));
  const roof = tw.el("div"), left = tw.el("div", {}, tw.el("h3", {}, "Limits of the machine"), tw.limitsTable(found),
    tw.el("h3", {}, "Bytes over each edge"),
    tw.table([["edge", "code"], ["transfers", "n"], ["bytes", "n"]], found.edges.map((edge) => [`${edge.src} → ${edge.dst}`, tw.number(edge.transfers), tw.bytes(edge.nbytes)]), "Edges"));
  root.append(
    tw.el("h3", {}, "Engines"), tw.enginesTable(found),
    tw.el("div", { class: "columns" }, left, tw.el("div", {}, tw.el("h3", {}, "Roofline"), roof)),
    tw.el("h3", {}, "Critical path"),
    tw.el("p", { class: "note" }, "Each statement was started by the end of the one before it. Only what shortens one of these makes the program faster."),
    ...tw.pathTable(found),
    tw.el("details", {}, tw.el("summary", {}, "What the model takes for granted"), tw.el("ul", { class: "plain" }, found.assumptions.map((line) => tw.el("li", {}, line)))));
  tw.roofline(roof, data.roofline, found);
};

// The lines of the kernel, each with the cycles of the critical path that are its own.
tw.source = (root, data) => {
  const spent = new Map();
  for (const step of data.cycles ? data.cycles.critical_path : []) {
    const key = `${step.file}:${step.line}`;
    spent.set(key, (spent.get(key) ?? 0) + step.cycles);
  }
  const total = data.cycles ? data.cycles.cycles || 1 : 1;
  const entries = Object.entries(data.files);
  if (!entries.length) root.append(tw.el("p", { class: "soft" }, "The program has no source file."));
  else if (data.cycles) root.append(tw.el("p", { class: "note" }, "Beside each line: its share of the critical path."));
  const nodes = new Map();
  for (const [file, { first, lines }] of entries) {
    root.append(tw.el("h3", { class: "code" }, file), tw.el("div", { class: "lines" }, lines.flatMap((line, i) => {
      const share = (spent.get(`${file}:${first + i}`) ?? 0) / total, code = tw.el("span", {}, line || " ");
      nodes.set(`${file}:${first + i}`, code);
      return [
        tw.el("span", { class: "no" }, String(first + i)),
        tw.el("span", { class: "heat" }, share ? tw.el("i", { style: `width:${Math.max(4, 88 * share)}%` }) : null, share ? tw.percent(share) : ""),
        code,
      ];
    })));
  }
  document.addEventListener("statement", ({ detail }) => {
    for (const node of nodes.values()) node.classList.remove("lit");
    nodes.get(`${detail.file}:${detail.line}`)?.classList.add("lit");
  });
};

tw.tilesTable = (tiles) => {
  const point = (tile) => `${tile.m} × ${tile.n} × ${tile.k}, ${tile.held} held`;
  const rows = tiles.flatMap((func) => func.products.flatMap((product) => {
    const tile = product.chosen, next = product.runner_up;
    return [[
      tw.where(product.file, product.line), `${product.name}: ${product.m} × ${product.n} × ${product.k} ${product.dtype}`, tw.el("b", {}, point(tile)),
      product.grid.join(" × "), tw.cycles(tile.wall), tile.limit,
      next ? `${point(next)}: ${tw.cycles(next.wall)} cycles` : "no other fits",
    ]];
  }));
  return tw.table([["line", "code"], ["product", "wrap"], ["tile"], ["tiles"], ["cycles", "n"], ["bound by"], ["second best", "wrap"]], rows, "Tiles of products");
};

// Tensors that one section hands to another: on chip, or through DDR and why; then other tensors that the program makes.
tw.handsTable = (data) => {
  const tag = (onChip, words) => tw.el("span", { class: onChip ? "tag yes" : "tag no" }, words);
  const rows = data.hands.map((hand) => [
    tag(hand.function, hand.function ? "stays on chip" : "through DDR"), hand.tensor, hand.line ? `line ${hand.line}` : "",
    `${hand.producer} → ${hand.consumer}`, hand.nbytes === null ? "" : tw.bytes(hand.nbytes),
    [hand.function ? `both are in ${hand.function} now` : "", hand.function && hand.kept ? "stored all the same, for others" : "", hand.why].filter(Boolean).join("; "),
  ]);
  for (const space of data.workspaces.filter((item) => !data.hands.some((hand) => hand.tensor === item.name))) {
    rows.push([tag(false, "through DDR"), space.name, "", "", tw.bytes(space.nbytes), `${space.shape} ${space.dtype}, made by the compiler for what crosses between cores`]);
  }
  return rows.length ? tw.table([[""], ["tensor", "code"], ["line"], ["from → to", "code"], ["bytes", "n"], ["why", "wrap"]], rows, "What sections hand to each other")
    : tw.el("p", { class: "soft" }, "Nothing goes from one section to another.");
};

tw.choices = (root, data) => {
  const products = data.tiles.some((func) => func.products.length), list = (lines) => tw.el("ul", { class: "plain" }, lines.map((line) => tw.el("li", {}, line)));
  root.append(tw.el("h3", {}, "Tiles of products"), products ? tw.tilesTable(data.tiles) : tw.el("p", { class: "soft" }, "The program has no matrix product."),
    tw.el("h3", {}, "What sections hand to each other"), tw.handsTable(data));
  if (data.hints.length) root.append(tw.el("h3", {}, "Hints"), list(data.hints));
  if (data.choices.length) root.append(tw.el("h3", {}, "Memories that were open"), list(data.choices));
  if (data.notes.length) root.append(tw.el("h3", {}, "Notes on the machine"), list(data.notes));
};

// Operations per cycle against operations per byte of DDR, with the roofs that the machine has for this program.

tw.roofline = (root, data, found) => {
  if (!data) {
    root.append(tw.el("p", { class: "soft" }, "There is no roofline: nothing is computed, or nothing crosses DDR."));
    return;
  }
  const box = tw.el("div"), points = data.points;
  root.append(box, tw.el("p", { class: "note" },
    "A multiply-add is two operations, an element of a vector operation one. The roofs are all cores together."));
  const knee = (point) => point.peak / data.bandwidth;
  const xs = points.flatMap((point) => [point.intensity, knee(point)]), ys = points.flatMap((point) => [point.reached, point.peak]);
  const low = (values) => 10 ** Math.floor(Math.log10(Math.min(...values) / 2)), high = (values) => 10 ** Math.ceil(Math.log10(Math.max(...values) * 2));
  const [x0, x1, y0, y1] = [low(xs), high(xs), low(ys), high(ys)];

  const draw = (width) => {
    const height = Math.min(340, Math.max(240, width * 0.55)), left = 52, bottom = height - 34, top = 8, right = width - 8;
    const x = (value) => left + (Math.log(value / x0) / Math.log(x1 / x0)) * (right - left);
    const y = (value) => bottom - (Math.log(value / y0) / Math.log(y1 / y0)) * (bottom - top);
    const short = (value) => (value >= 1e6 ? `${tw.number(value / 1e6)} M` : value >= 1 ? tw.number(value) : String(value));
    const marks = [];
    for (let at = x0; at <= x1 * 1.01; at *= 10) {
      marks.push(tw.svg("line", { class: "grid", x1: x(at), x2: x(at), y1: top, y2: bottom }),
        tw.svg("text", { x: x(at), y: bottom + 14, "text-anchor": "middle" }, short(Number(at.toPrecision(2)))));
    }
    for (let at = y0; at <= y1 * 1.01; at *= 10) {
      marks.push(tw.svg("line", { class: "grid", x1: left, x2: right, y1: y(at), y2: y(at) }),
        tw.svg("text", { x: left - 5, y: y(at) + 4, "text-anchor": "end" }, short(Number(at.toPrecision(2)))));
    }
    marks.push(tw.svg("text", { x: right, y: height - 4, "text-anchor": "end" }, "operations per byte of DDR"),
      tw.svg("text", { x: left + 5, y: top + 10 }, "operations per cycle"));
    const top_peak = Math.max(...points.map((point) => point.peak)), start = Math.max(x0, y0 / data.bandwidth);
    marks.push(tw.svg("line", {
      x1: x(start), y1: y(start * data.bandwidth), x2: x(top_peak / data.bandwidth), y2: y(top_peak), stroke: "var(--soft)", "stroke-width": 1.5,
    }));
    const middle = Math.sqrt(start * (top_peak / data.bandwidth));
    marks.push(tw.svg("text", { x: x(middle) - 8, y: y(middle * data.bandwidth) - 4, "text-anchor": "end" }, `DDR ${tw.number(data.bandwidth)} B/cycle`));
    points.forEach((point) => {
      const colour = tw.engineColour(point.engine), roof = Math.min(point.peak, point.intensity * data.bandwidth);
      const share = point.reached / roof, near = x(point.intensity) > (left + right) / 2;
      const words = `${point.engine}: ${tw.number(point.reached)} operations per cycle, ${tw.percent(share)} of its roof of ${tw.number(roof)}`;
      marks.push(
        tw.svg("line", { x1: x(knee(point)), x2: right, y1: y(point.peak), y2: y(point.peak), stroke: colour, "stroke-width": 2 }),
        tw.svg("text", { x: right - 2, y: y(point.peak) - 5, "text-anchor": "end" }, `${point.engine} ${short(Math.round(point.peak))}`),
        tw.svg("line", { x1: x(point.intensity), x2: x(point.intensity), y1: y(point.reached), y2: y(roof), stroke: colour, "stroke-dasharray": "3 3" }),
        tw.svg("circle", {
          class: "point", cx: x(point.intensity), cy: y(point.reached), r: 6, fill: colour, tabindex: 0, role: "img", "aria-label": words,
          onpointermove: (event) => tw.tip.show(event.clientX, event.clientY, words, [`${tw.number(point.intensity)} operations per byte of DDR`]),
          onpointerleave: () => tw.tip.hide(),
          onfocus: (event) => tw.tip.showAt(event.target, words, [`${tw.number(point.intensity)} operations per byte of DDR`]),
          onblur: () => tw.tip.hide(),
        }),
        tw.svg("text", { class: "strong", x: x(point.intensity) + (near ? -11 : 11), y: y(point.reached) + 4, "text-anchor": near ? "end" : "start" },
          `${point.engine} ${tw.percent(share)}`));
    });
    box.replaceChildren(tw.svg("svg", {
      viewBox: `0 0 ${width} ${height}`, height, role: "group",
      "aria-label": `Roofline: ${tw.number(found.ratio)} times the limit, bound by ${found.bound_by}`,
    }, marks));
  };
  tw.whenSized(box, draw);
};

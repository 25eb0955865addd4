// Puts the page together, and marks in the navigation where the reader is.

tw.start = () => {
  const data = tw.data;
  tw.head(document.getElementById("head"), data);
  if (data.timeline && data.timeline.rows.length) new tw.Timeline(tw.body("timeline"), data.timeline);
  else tw.body("timeline").append(tw.el("p", { class: "soft" }, data.unknown ?? "The program has nothing to run."));
  tw.time(tw.body("time"), data);
  tw.memory(tw.body("memory"), data.functions);
  tw.source(tw.body("source"), data);
  new tw.Compare(tw.body("program"), data.stages);
  tw.choices(tw.body("choices"), data);

  const sections = [...document.querySelectorAll("main section")];
  const links = sections.map((section) => tw.el("a", { href: `#${section.id}` }, section.querySelector("h2").textContent));
  document.getElementById("nav").append(tw.el("ul", {}, links.map((link) => tw.el("li", {}, link))));
  const mark = () => {
    const here = sections.findLastIndex((section) => section.getBoundingClientRect().top < innerHeight * 0.3);
    links.forEach((link, i) => (i === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  };
  addEventListener("scroll", mark, { passive: true });
  mark();
};

tw.start();

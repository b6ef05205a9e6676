"""Style and script of the HTML report: constants, with nothing of any run in them."""

from twin.report.charts.style import BACKGROUND, FONT, GRID, INK, PALETTE


def _variables(theme: str) -> str:
    return (
        f"--ink:{INK[theme]};--paper:{BACKGROUND[theme]};--line:{GRID[theme]};"
        f"--good:{PALETTE['current'][theme]};--bad:{PALETTE['slo'][theme]};"
    )


STYLE = (
    f":root{{{_variables('light')}}}"
    f"@media (prefers-color-scheme: dark){{:root{{{_variables('dark')}}}}}"
    f"body{{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 {FONT};"
    "font-variant-numeric:tabular-nums}"
    "main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 3rem}"
    "h1{font-size:1.5rem;margin:0 0 .5rem;overflow-wrap:anywhere}"
    "h2{font-size:1.15rem;margin:2rem 0 .5rem}"
    ".verdict{font-size:1.2rem;margin:0;padding:.5rem .75rem;border-left:6px solid var(--ink)}"
    ".meets{border-color:var(--good)}.misses{border-color:var(--bad);border-left-style:double}"
    ".setup,figcaption,caption,footer{font-size:.875rem;opacity:.85}"
    ".setup,pre{overflow-wrap:anywhere}"
    "figure{margin:2.25rem 0}.chart{min-height:18rem;width:100%;overflow-x:auto}"
    ".scroll{overflow-x:auto}"
    "table{border-collapse:collapse;margin:.5rem 0}"
    "caption{text-align:left}"
    "th,td{padding:.2rem .9rem .2rem 0;text-align:right;border-bottom:1px solid var(--line);"
    "white-space:nowrap;font-weight:normal}"
    "thead th{font-weight:600}th:first-child{text-align:left}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}"
    "dt{font-weight:600}dd{margin:0}"
    "pre{white-space:pre-wrap;border:1px solid var(--line);padding:.75rem;font-size:.875rem}"
    "summary{cursor:pointer}"
    "footer{margin-top:3rem}"
    ".vega-embed summary{opacity:.6!important}"
)

# Draws every chart in the reader's theme and width, again when either changes.
SCRIPT = """
(() => {
  const payload = JSON.parse(document.getElementById("payload").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const sized = (spec, width) => {
    const views = spec.vconcat ?? [spec];
    const wide = views.map((view) => ({...view, width}));
    return spec.vconcat ? {...spec, vconcat: wide} : wide[0];
  };
  const views = new Map();
  const draw = async () => {
    const theme = payload.themes[dark.matches ? "dark" : "light"];
    for (const {id, spec} of payload.charts) {
      const box = document.getElementById(id);
      const width = Math.max(240, box.clientWidth - 125);
      const options = {
        renderer: "svg",
        config: theme.config,
        actions: {export: true, source: false, compiled: false, editor: false},
      };
      views.get(id)?.finalize();
      const full = {...sized(spec, width), params: theme.params};
      views.set(id, await vegaEmbed(box, full, options));
    }
  };
  let queue = Promise.resolve();
  const redraw = () => {
    queue = queue.then(draw).then(() => { document.body.dataset.drawn = "yes"; });
  };
  let timer;
  let last = document.body.clientWidth;
  window.addEventListener("resize", () => {
    if (document.body.clientWidth === last) return;
    last = document.body.clientWidth;
    clearTimeout(timer);
    timer = setTimeout(redraw, 150);
  });
  dark.addEventListener("change", redraw);
  redraw();
})();
"""

/** Colours of both themes as custom properties, then the rules that use them. Contrast of text is 4.5:1 or more. */
const LIGHT =
  "--paper:#ffffff;--box:#ffffff;--odd:#f6f8fa;--even:#ffffff;--line:#6e7781;--ink:#1f2328;--soft:#59636e;--halo:#ffffff;--on:#1a7f37;--on-fill:#dafbe1;--hot:#bc4c00;--missed:#cf222e";
const DARK =
  "--paper:#0d1117;--box:#161b22;--odd:#12171e;--even:#0d1117;--line:#8b949e;--ink:#e6edf3;--soft:#9da7b3;--halo:#0d1117;--on:#3fb950;--on-fill:#12361f;--hot:#f0883e;--missed:#ff7b72";

export const chartStyle: string = [
  `.muster-chart{${LIGHT};font-family:Inter,"Helvetica Neue",Helvetica,Arial,"Liberation Sans",sans-serif}`,
  `@media (prefers-color-scheme:dark){.muster-chart{${DARK}}}`,
  ".muster-chart .paper{fill:var(--paper)}",
  ".muster-chart .box{fill:var(--box);stroke:var(--line);stroke-width:1.2}",
  ".muster-chart .odd.compound>.box,.muster-chart .odd.parallel>.box{fill:var(--odd)}",
  ".muster-chart .even.compound>.box,.muster-chart .even.parallel>.box{fill:var(--even)}",
  ".muster-chart .region>.box{stroke-dasharray:5 4}",
  ".muster-chart .history>.box{stroke-dasharray:2 3}",
  ".muster-chart .inner{fill:none;stroke:var(--line)}",
  ".muster-chart .rule{stroke:var(--line);stroke-width:.6;opacity:.6}",
  ".muster-chart text{fill:var(--ink);font-size:11.5px}",
  ".muster-chart .name{font-size:14px;font-weight:600}",
  ".muster-chart .over{paint-order:stroke;stroke:var(--halo);stroke-width:5px;stroke-linejoin:round}",
  ".muster-chart .over.missed{fill:var(--missed)}",
  ".muster-chart .head.last{fill:var(--hot)}",
  ".muster-chart .head.missed{fill:var(--missed)}",
  ".muster-chart .mid{text-anchor:middle}",
  ".muster-chart .before text{text-anchor:end}",
  ".muster-chart .inside{font-size:12px}",
  ".muster-chart .soft{fill:var(--soft)}",
  ".muster-chart .count{font-size:10px;text-anchor:end;fill:var(--soft)}",
  ".muster-chart .times{fill:var(--soft)}",
  ".muster-chart .edge{fill:none;stroke:var(--line);stroke-width:1.3}",
  ".muster-chart .head{fill:var(--line)}",
  ".muster-chart .dot{fill:var(--ink)}",
  ".muster-chart .active>.box{stroke:var(--on);stroke-width:2.4}",
  ".muster-chart .atomic.active>.box,.muster-chart .final.active>.box{fill:var(--on-fill)}",
  ".muster-chart .edge.last{stroke:var(--hot);stroke-width:2.4}",
  ".muster-chart .label.last text{fill:var(--hot)}",
  ".muster-chart .missed>.box,.muster-chart .edge.missed{stroke:var(--missed);stroke-dasharray:4 3}",
  ".muster-chart .missed>.name{fill:var(--missed)}",
].join("");

const LIGHT =
  "--paper:#ffffff;--box:#f6f8fa;--line:#6e7781;--ink:#1f2328;--soft:#59636e;--bad:#cf222e;--warn:#9a6700;--on:#1a7f37;--on-fill:#dafbe1;--now:#ddf4ff;--note:#fff8c5";
const DARK =
  "--paper:#0d1117;--box:#161b22;--line:#8b949e;--ink:#e6edf3;--soft:#9da7b3;--bad:#ff7b72;--warn:#d29922;--on:#3fb950;--on-fill:#12361f;--now:#12283d;--note:#2d2a16";

export const sequenceStyle: string = [
  `.muster-sequence{${LIGHT};font-family:Inter,"Helvetica Neue",Helvetica,Arial,"Liberation Sans",sans-serif}`,
  `@media (prefers-color-scheme:dark){.muster-sequence{${DARK}}}`,
  ".muster-sequence .paper{fill:var(--paper)}",
  ".muster-sequence text{fill:var(--ink);font-size:12px}",
  ".muster-sequence .head{fill:var(--box);stroke:var(--line)}",
  ".muster-sequence .title{font-size:13px;font-weight:600;text-anchor:middle}",
  ".muster-sequence .life{stroke:var(--line);stroke-width:1;stroke-dasharray:3 4;fill:none}",
  ".muster-sequence .number{fill:var(--soft);font-size:10px;text-anchor:end}",
  ".muster-sequence .line,.muster-sequence .break{stroke:var(--ink);stroke-width:1.3;fill:none}",
  ".muster-sequence .break{stroke:var(--line);stroke-dasharray:1 5}",
  ".muster-sequence .tip{fill:var(--ink)}",
  ".muster-sequence .label{text-anchor:middle}",
  ".muster-sequence .label,.muster-sequence .own,.muster-sequence .quiet{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}",
  ".muster-sequence .quiet{fill:var(--soft)}",
  ".muster-sequence .line.lost,.muster-sequence .line.refused,.muster-sequence .cross{stroke:var(--bad);fill:none}",
  ".muster-sequence .cross{stroke-width:2.4}",
  ".muster-sequence .line.lost{stroke-dasharray:6 4}",
  ".muster-sequence .tip.refused{fill:var(--bad)}",
  ".muster-sequence text.lost,.muster-sequence text.refused,.muster-sequence .crash .own{fill:var(--bad)}",
  ".muster-sequence .line.late,.muster-sequence .line.duplicate{stroke:var(--warn)}",
  ".muster-sequence .tip.late,.muster-sequence .tip.duplicate,.muster-sequence text.late,.muster-sequence text.duplicate,.muster-sequence .timeout .own{fill:var(--warn)}",
  ".muster-sequence .clock{stroke:var(--warn);stroke-width:1.4;fill:var(--paper)}",
  ".muster-sequence .point{fill:var(--ink)}",
  ".muster-sequence .paperclip{fill:var(--note);stroke:var(--line);stroke-width:.6}",
  ".muster-sequence rect.state{fill:var(--on-fill);stroke:var(--on);stroke-width:.8}",
  ".muster-sequence text.state{font-size:11px}",
  ".muster-sequence .band{fill:var(--now)}",
].join("");

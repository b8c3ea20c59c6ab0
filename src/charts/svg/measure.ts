/**
 * Widths of text without a browser: advance widths of Helvetica, which Arial and Liberation Sans share,
 * in thousandths of the font size for the characters 32 to 126.
 */
// deno-fmt-ignore
const WIDTHS: readonly number[] = [
  278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
  556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
  1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
  667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
  333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
  556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
/** Wide enough for the sans-serif fonts that stand in for Helvetica; bold is wider again. */
const REGULAR = 1.08;
const BOLD = 1.16;

/** The width of a line of text in pixels, rounded up, generous rather than exact. */
export function widthOf(text: string, size: number, bold = false): number {
  let sum = 0;
  for (const character of text) sum += WIDTHS[character.codePointAt(0)! - 32] ?? 800;
  return Math.ceil(sum * size / 1000 * (bold ? BOLD : REGULAR));
}

/** Breaks text into lines of at most `limit` characters at spaces, commas and slashes; long words stay whole. */
export function breakText(text: string, limit: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > limit) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

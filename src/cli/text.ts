/** Columns of text, aligned; the cells of a row that is too short are left empty. */
export function columns(
  rows: readonly (readonly string[])[],
  style: (cell: string, row: number, column: number) => string = (cell) => cell,
): string[] {
  const count = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from(
    { length: count },
    (_, c) => Math.max(0, ...rows.map((row) => [...(row[c] ?? "")].length)),
  );
  return rows.map((row, r) =>
    widths.map((width, c) => {
      const cell = row[c] ?? "";
      const gap = c === count - 1 ? "" : " ".repeat(width - [...cell].length + 2);
      return style(cell, r, c) + gap;
    }).join("").trimEnd()
  );
}

/** Text broken at spaces into lines of a width; a longer word has a line of its own. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

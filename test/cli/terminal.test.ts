import assert from "node:assert/strict";
import { test } from "node:test";
import { cut, LiveBlock, paintFor } from "../../src/cli/terminal.ts";

test("a line is cut to the columns of the screen, colours do not count, and end", () => {
  assert.equal(cut("abcdef", 6), "abcdef");
  assert.equal(cut("abcdef", 5), "abcd…");
  assert.equal(cut("\u001b[1mabc\u001b[22mdef", 6), "\u001b[1mabc\u001b[22mdef");
  assert.equal(cut("\u001b[1mabc\u001b[22mdef", 5), "\u001b[1mabc\u001b[22md…");
  assert.equal(
    cut("\u001b[1mabc\u001b[22mdef\u001b[2mghi\u001b[22m", 3),
    "\u001b[1mab…\u001b[22m\u001b[2m\u001b[22m",
  );
  assert.equal(cut("●●●●", 3), "●●…");
});

test("a live block never draws more than it can find again, and leaves the whole at the end", () => {
  let written = "";
  const screen = {
    live: true,
    columns: 5,
    rows: 3,
    paint: paintFor(false),
    write: (t: string) => void (written += t),
  };
  const block = new LiveBlock(screen);
  block.draw(["abcdefgh", "b", "c", "d"]);
  assert.equal(written, "abcd…\nb\n");
  written = "";
  screen.rows = 10; // a window that was made larger
  block.draw(["a", "b", "c"]);
  assert.equal(written, "\u001b[2A\u001b[0Ja\nb\nc\n");
  written = "";
  block.end(["abcdefgh"]);
  assert.equal(written, "\u001b[3A\u001b[0Jabcdefgh\n");
});

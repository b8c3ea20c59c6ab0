import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { muster } from "./support.ts";

const serve = (journal: string, ...more: string[]) =>
  muster(
    ...["serve", "--data-parallel-size", "2", "--launch", "reference", "--journal", journal],
    ...["--once", ...more],
  );
const BROKEN = ["--engine-args", "--fault crash-before-hello --exit-code 7"];

test("started again with --anew after a failure, it keeps the run that failed and begins another", async () => {
  const journal = mkdtempSync(join(tmpdir(), "muster-anew-"));
  const earlier = () => readdirSync(join(journal, "earlier"));
  try {
    assert.equal((await serve(journal, "--anew", ...BROKEN)).code, 1);
    assert.equal(existsSync(join(journal, "earlier")), false);

    const refused = await serve(journal, ...BROKEN);
    assert.match(
      refused.err,
      /the run in .* failed \(engine-exited\) before this start, and nothing was started: begin anew with --anew/,
    );

    // Also with another configuration: what failed may have been the cause.
    const mended = await serve(journal, "--anew");
    assert.equal(mended.code, 0, mended.err);
    assert.match(
      mended.out,
      /the run of before has ended and is kept in .*\/earlier\/[0-9a-f-]{36}/,
    );
    assert.match(mended.out, /✓ 2 ranks formed up/);
    assert.equal(earlier().length, 1);

    const again = await serve(journal, "--anew");
    assert.equal(again.code, 0, again.err);
    assert.equal(earlier().length, 2);
    const [first] = earlier();
    const told = await muster("log", "verify", join(journal, "earlier", first!));
    assert.equal(told.code, 0, told.err);
  } finally {
    rmSync(journal, { recursive: true, force: true });
  }
});

test("--anew without a journal is refused", async () => {
  const { code, err } = await muster("serve", "--data-parallel-size", "2", "--anew");
  assert.equal(code, 2);
  assert.match(err, /--anew needs --journal/);
});

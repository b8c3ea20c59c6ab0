/** Runs of ours with real engines, replayed from what their journals recorded. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KernelEvent, Note } from "../../src/kernel/mod.ts";
import { clusterKernel, type StartupContext } from "../../src/machines/mod.ts";
import { type Run, runs } from "./recording.ts";

/** Folds a run; outcomes find the call that is open now, whatever number it had when it was recorded. */
function replay({ inputs }: Run): {
  formedAfterMs: number | null;
  notes: Note[];
  startup: StartupContext;
  place: unknown;
} {
  const kernel = clusterKernel();
  let system = kernel.empty;
  let formedAfterMs: number | null = null;
  const notes: Note[] = [];
  for (const { at, to, event } of inputs) {
    const open = system.instances.get(to)?.calls[0];
    const said = (event.call === undefined ? event : { ...event, call: open?.id }) as KernelEvent;
    const step = kernel.step(system, { seq: system.seq + 1, at, to, event: said });
    system = step.system;
    notes.push(...step.notes);
    for (const { kind, ...rest } of step.effects) {
      const { effect } = rest as { effect?: { type: string; what?: string } };
      if (kind === "message" && effect?.type === "announce" && effect.what === "formed") {
        formedAfterMs = at;
      }
    }
  }
  const { snapshot } = system.instances.get("startup")!.state;
  return {
    formedAfterMs,
    notes,
    startup: snapshot.context as StartupContext,
    place: snapshot.value,
  };
}

test("runs of both versions are kept", () => {
  assert.deepEqual(runs().map((r) => r.name), ["0.12.0/moe", "0.32.0/moe"]);
});

for (const run of runs()) {
  test(`${run.name}: two real ranks formed up, and everything that they said was expected`, () => {
    const { formedAfterMs, notes, startup, place } = replay(run);
    assert.deepEqual(notes, []);
    assert.notEqual(formedAfterMs, null);
    assert.deepEqual(startup.blocks, { sum: 32_768, min: 16_384, max: 16_384 });
    // 0.12 and 0.32 hash what collectives depend on, each in its own way.
    assert.match(startup.hash ?? "", /^[0-9a-f]{64}$/);
    assert.deepEqual([place, startup.failure], ["stopped", null]);
  });
}

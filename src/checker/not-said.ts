/** What a reader must not take from a verdict. */
import type { Verdict } from "./check.ts";

/** The limits of what was checked, a sentence each. */
export function notSaid(
  { outcome, fingerprints, symmetric }: Pick<Verdict, "outcome" | "fingerprints" | "symmetric">,
): string[] {
  const sentences = [
    outcome === "ok"
      ? "nothing about more processes, more faults or other faults than the model names;"
      : "nothing about states beyond those explored;",
    "nothing about durations: a timer that is armed may fire at any time, late or early;",
    "nothing about what the model leaves out: drivers, sockets, memory, the contents that it abstracts.",
  ];
  if (fingerprints) {
    sentences.push(
      "fingerprints: a state that was taken for another one was not explored, nor what only it leads to; `eventually` is not checked in this mode.",
    );
  }
  if (symmetric) {
    sentences.push(
      "symmetry: one state of each orbit was explored; `eventually` is not checked in this mode.",
    );
  }
  return sentences;
}

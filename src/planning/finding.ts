import type { Notice, Refusal } from "./refusal.ts";

/** Something that a preflight found. */
export interface Finding {
  /** `error`: it cannot work. `warning`: it may not. `note`: worth knowing. */
  readonly level: "error" | "warning" | "note";
  readonly code: string;
  /** The node it is about; null: all of them. */
  readonly node: string | null;
  readonly message: string;
  readonly fix?: string;
}

export const fromRefusal = (r: Refusal, node: string | null): Finding => ({
  level: "error",
  code: r.code,
  node,
  message: `${r.flag} (${r.value}): ${r.message}`,
  fix: r.fix,
});

export const fromNotice = (n: Notice, node: string | null): Finding => ({
  level: "note",
  code: n.code,
  node,
  message: n.message,
});

/** Folds for people beside the system. They decide nothing, but must not start from nothing where the past was compacted. */
import type { Applied } from "../journal/mod.ts";
import type { Json } from "../kernel/mod.ts";

/** A fold over the steps of a run. */
export interface View {
  /** Changes when what {@link save} returns changes its meaning. */
  readonly version: number;
  /** Takes the next step. */
  apply(step: Applied): void;
  /** What it has folded so far, as JSON. */
  save(): Json;
  /** Goes on from what was saved. */
  load(saved: Json): void;
}

/** A view as it is kept in snapshots and checkpoints. */
interface SavedView {
  readonly version: number;
  readonly state: Json;
}

export class Views {
  readonly #views: Readonly<Record<string, View>>;

  constructor(views: Readonly<Record<string, View>>) {
    this.#views = views;
  }

  apply(step: Applied): void {
    for (const name in this.#views) this.#views[name]!.apply(step);
  }

  save(): Record<string, Json> {
    return Object.fromEntries(
      Object.entries(this.#views).map(([name, view]) => {
        const saved: SavedView = { version: view.version, state: view.save() };
        return [name, saved as unknown as Json];
      }),
    );
  }

  /** The names of views that cannot go on from what was saved: not there, or of another version. */
  strangers(saved: Readonly<Record<string, Json>>): string[] {
    return Object.entries(this.#views)
      .filter(([name, view]) =>
        (saved[name] as unknown as SavedView | undefined)?.version !== view.version
      )
      .map(([name]) => name);
  }

  /** Loads every view that can go on from what was saved. */
  load(saved: Readonly<Record<string, Json>>): void {
    const strangers = new Set(this.strangers(saved));
    for (const [name, view] of Object.entries(this.#views)) {
      if (!strangers.has(name)) view.load((saved[name] as unknown as SavedView).state);
    }
  }
}

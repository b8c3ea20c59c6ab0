/** Is this the configuration with which the run began? */
import { JournalError } from "../journal/mod.ts";
import type { KernelEvent } from "../kernel/mod.ts";

/** One member that is not the same. Absent values are undefined. */
export interface ConfigurationDifference {
  /** For example `ranks[3].address`. */
  readonly path: string;
  readonly recorded: unknown;
  readonly given: unknown;
}

/** A run goes on with the configuration that it began with. */
export class ConfigurationChangedError extends JournalError {
  readonly differences: readonly ConfigurationDifference[];

  constructor(journal: string, differences: readonly ConfigurationDifference[]) {
    const listed = differences.slice(0, 10).map((d) =>
      `  ${d.path}: recorded ${show(d.recorded)}, given ${show(d.given)}`
    );
    if (differences.length > 10) listed.push(`  and ${differences.length - 10} more`);
    super(
      "configuration-changed",
      `the run in ${journal} began with another configuration; start with the recorded one, or begin a new run:\n` +
        listed.join("\n"),
    );
    this.name = "ConfigurationChangedError";
    this.differences = differences;
  }
}

const show = (value: unknown): string => value === undefined ? "nothing" : JSON.stringify(value);

/** What differs between two JSON values, member by member. */
export function differencesOf(
  recorded: unknown,
  given: unknown,
  path = "",
): ConfigurationDifference[] {
  if (isObject(recorded) && isObject(given) && Array.isArray(recorded) === Array.isArray(given)) {
    const keys = new Set([...Object.keys(recorded), ...Object.keys(given)]);
    return [...keys].flatMap((key) =>
      differencesOf(
        recorded[key],
        given[key],
        Array.isArray(recorded) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`,
      )
    );
  }
  return recorded === given ? [] : [{ path, recorded, given }];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** @throws ConfigurationChangedError when it is another one. */
export function assertSameConfiguration(
  journal: string,
  recorded: KernelEvent,
  given: KernelEvent,
): void {
  const differences = differencesOf(recorded, given);
  if (differences.length > 0) throw new ConfigurationChangedError(journal, differences);
}

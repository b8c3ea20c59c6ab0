/** The command line, or a file that it names, cannot be carried out: exit code 2. */
export class UsageError extends Error {}

/** What `muster` ends with. The same for every command. */
export const EXIT: {
  readonly ok: 0;
  readonly failed: 1;
  readonly usage: 2;
  readonly interrupted: 130;
} = {
  ok: 0,
  /** The cluster, a check or a comparison failed; standard error says how. */
  failed: 1,
  /** The command line or a configuration cannot be carried out; standard error says what to change. */
  usage: 2,
  interrupted: 130,
};

/** What `muster check` cannot carry out. */

/** The command line asks for something that there is not. */
export class Refusal extends Error {}

/** Errors that say what is wrong with a command line, a model or a file: they end the command with 2, in a sentence. */
const REFUSED = new Set([
  "bad-model",
  "not-portable",
  "replay",
  "unfit-model",
  "unsound-symmetry",
  "unsuited-fingerprints",
]);

export const isRefusal = (error: unknown): error is Error =>
  error instanceof Refusal ||
  (error instanceof Error && REFUSED.has((error as { code?: string }).code ?? ""));

/** What went wrong with a file, in words. */
export function whyOf(error: unknown): string {
  const { code, message } = error as { code?: string; message: string };
  switch (code) {
    case "ENOENT":
      return "there is no such file or folder";
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return "it is not allowed";
    case "EISDIR":
      return "it is a folder";
    default:
      return message;
  }
}

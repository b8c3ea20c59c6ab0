import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { LAUNCH_MARK } from "./protocol.ts";

/**
 * The guardian: a shell that waits in the launch's process group on a pipe whose other end only the keeper holds. When the keeper
 * is gone, however it went, the read ends, and the guardian ends the group: terminate, one second, kill. Where there is a /proc it
 * also kills what left the group, found by the launch's mark. It costs the engine one child that it did not start.
 *
 * The shell becomes the program by `exec`, so pid, exit code and signal are the program's own. The variable that it unsets tells a Deno
 * program of the third descriptor, which is closed by then.
 */
const GUARD = `(
exec 0<&3 3<&- >/dev/null 2>&1
trap "" TERM INT HUP
read _
kill -TERM 0
sleep 1
read me _ < /proc/self/stat
for file in $(grep -lszxF -- "${LAUNCH_MARK}=$${LAUNCH_MARK}" /proc/[0-9]*/environ); do
  pid=\${file#/proc/}; pid=\${pid%/environ}
  [ "$pid" = "$me" ] || kill -KILL "$pid"
done
kill -KILL 0
) &
unset DENO_EXTRA_STDIO_FDS
exec "$@" 3<&-`;

/** The command line that runs `argv` guarded; file descriptor 3 must be a pipe that the caller holds and never writes to. */
export function guarded(argv: readonly string[]): [string, string[]] {
  return ["/bin/sh", ["-c", GUARD, "muster-guard", ...argv]];
}

/** A program that cannot be started, as the system would have said it. */
export interface NotStartable {
  code: "ENOENT" | "EACCES" | "ENOTDIR";
  message: string;
}

/**
 * Looks the program up as `execvp` does, because behind the guardian's shell a missing program would be an exit code 127 and no error.
 * Answers with the path, or why there is none.
 */
export function findProgram(
  name: string,
  path: string | undefined,
  cwd: string,
): { program: string } | NotStartable {
  try {
    if (!statSync(cwd).isDirectory()) {
      return { code: "ENOTDIR", message: `the working directory ${cwd} is not a directory` };
    }
  } catch {
    return { code: "ENOENT", message: `the working directory ${cwd} does not exist` };
  }
  const candidates = name.includes("/")
    ? [isAbsolute(name) ? name : join(cwd, name)]
    : (path ?? "/usr/local/bin:/usr/bin:/bin").split(delimiter).map((d) => join(d || cwd, name));
  let found: string | undefined;
  for (const candidate of candidates) {
    try {
      if (!statSync(candidate).isFile()) continue;
      found ??= candidate;
      accessSync(candidate, constants.X_OK);
      return { program: candidate };
    } catch {
      continue;
    }
  }
  if (found !== undefined) {
    return { code: "EACCES", message: `${found} is not executable` };
  }
  return {
    code: "ENOENT",
    message: name.includes("/")
      ? `${candidates[0]} does not exist`
      : `${name} was not found in PATH (${path ?? "unset"})`,
  };
}

import { shellQuoted } from "../../planning/mod.ts";

/** What a guard that was not allowed to start, or lost its lease, ends with: "temporary failure" of sysexits. */
export const GUARD_EXIT = 75;

export interface GuardOptions {
  /** The job's id, under which it asks for its lease. */
  readonly id: string;
  /** Where the lease is asked for; null: no lease, only the deadline below. */
  readonly lease: { readonly host: string; readonly port: number } | null;
  /** Epoch seconds: from then on it does not start any more. */
  readonly notAfter: number;
  /** So long it goes on without an answer. Seconds, at least 2. */
  readonly leaseSeconds: number;
  /** From the polite end to the end by force. Seconds. */
  readonly graceSeconds: number;
  /** Null: where Ray's own processes are. */
  readonly cwd: string | null;
  readonly argv: readonly string[];
}

/**
 * What stands between Ray and a rank, in `bash`, because Ray does not promise enough:
 *
 * - a stopped PENDING job starts later all the same: it asks whether it may, and ends with 75 when it may not;
 * - a job that is over may have left its processes: they end when the lease is not renewed, or is refused;
 * - whoever kills the guard itself leaves its child: a reader on a pipe that only the guard holds ends the group.
 *
 * It passes the exit code on, also a signal's, and tells it to whoever holds the lease. SIGTERM it ignores itself: Ray
 * sends it to every descendant, and a `wait` that is interrupted does not know how the rank ended. The lease is asked
 * for in HTTP over bash's `/dev/tcp`, so a node needs nothing but bash and coreutils.
 */
export const GUARD_SCRIPT: string = String.raw`
unset MUSTER_GUARD; early=; trap 'early=1' TERM INT
id=$1 host=$2 port=$3 until=$4 lease=$5 grace=$6 dir=$7; shift 7
[ "$(date +%s)" -lt "$until" ] || { echo "guard: too late to start" >&2; exit 75; }
ask() {
  timeout 3 bash -c '
    exec 3<>"/dev/tcp/$0/$1" || exit 1
    printf "GET %s HTTP/1.0\r\n\r\n" "$2" >&3
    while IFS= read -r l <&3; do [ "$l" = "$(printf "\r")" ] && break; done
    IFS= read -r l <&3; printf %s "$l"' "$host" "$port" "$1" 2>/dev/null
}
if [ -n "$host" ]; then
  may=; for _ in 1 2 3; do may=$(ask "/may/$id"); [ -n "$may" ] && break; sleep 1; done
  [ "$may" = run ] || { echo "guard: not allowed to start (${"$"}{may:-nobody answers at $host $port})" >&2; exit 75; }
fi
if [ -n "$early" ]; then [ -z "$host" ] || ask "/ended/$id/143" >/dev/null; exit 143; fi
[ -z "$dir" ] || cd "$dir" || exit 75
exec 4> >(trap "" TERM INT HUP; exec 4>&- >/dev/null 2>&1; read -r _; kill -TERM 0; sleep 1; kill -KILL 0)
die=; command -v setpriv >/dev/null 2>&1 && die="setpriv --pdeathsig KILL"
$die "$@" 4>&- &
child=$!
trap "" TERM INT
[ -z "$early" ] || kill -TERM "$child"
if [ -n "$host" ]; then (
  exec 4>&-
  step=$((lease / 4)); [ "$step" -ge 1 ] || step=1
  last=$(date +%s)
  while sleep "$step"; do
    may=$(ask "/may/$id"); now=$(date +%s)
    case $may in
      run) last=$now ;;
      stop) break ;;
      *) [ $((now - last)) -lt "$lease" ] || { echo "guard: the lease ran out" >&2; break; } ;;
    esac
  done
  kill -TERM "$child" 2>/dev/null
  sleep "$grace"; kill -KILL "$child" 2>/dev/null
) & renew=$!; disown "$renew"; fi
wait "$child"; code=$?
[ -z "$renew" ] || kill -KILL "$renew" 2>/dev/null
[ -z "$host" ] || ask "/ended/$id/$code" >/dev/null
if [ "$code" -gt 128 ] && [ "$code" -lt 160 ]; then trap - TERM INT; kill -s $((code - 128)) $$; fi
exit "$code"
`.trim();

/** The variable that takes the guard to the node: Ray writes an entrypoint into the log, and this one is long. */
export const GUARD_VARIABLE = "MUSTER_GUARD";

/** The shell line of a guarded rank, for a job's `entrypoint`; its environment has the script. */
export const entrypointOf = (o: GuardOptions): string =>
  `exec bash -c "$${GUARD_VARIABLE}" muster-guard ` + [
    o.id,
    ...[o.lease?.host ?? "", String(o.lease?.port ?? 0), String(o.notAfter)],
    ...[String(Math.max(2, Math.round(o.leaseSeconds))), String(o.graceSeconds), o.cwd ?? ""],
    ...o.argv,
  ].map(shellQuoted).join(" ");

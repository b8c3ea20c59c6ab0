import { createHash, randomBytes } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { KeeperError } from "./errors.ts";

/**
 * Where one keeper lives, drawn afresh for each: a name that no earlier keeper had cannot be answered by one that is dead (on Deno
 * the children of a killed keeper hold its socket open). JSON; it goes to the journal before the keeper is started.
 */
export interface KeeperPlace {
  /** Random; also the mark of everything that the keeper starts. */
  mark: string;
  /** Directory with mode 0700 that holds the socket, the token, and the keeper's own log. */
  directory: string;
}

/** Linux takes 107 bytes, macOS 103, and Node binds to a truncated path without a word. */
const MAX_SOCKET_PATH_BYTES = 100;

/** Draws a place. Touches nothing. `base` is preferred when the socket's path stays short enough. */
export function drawKeeperPlace(base?: string): KeeperPlace {
  const mark = randomBytes(8).toString("hex");
  const user = userInfo().uid;
  const preferred = base ?? join(tmpdir(), `muster-${user}`);
  const directory = join(preferred, `keeper-${mark}`);
  const place = { mark, directory };
  if (new TextEncoder().encode(socketOf(place)).length <= MAX_SOCKET_PATH_BYTES) return place;
  const hash = createHash("sha256").update(preferred).digest("hex").slice(0, 8);
  return { mark, directory: join("/tmp", `muster-${user}-${hash}`, `keeper-${mark}`) };
}

export const socketOf = (place: KeeperPlace): string => join(place.directory, "s");
export const tokenFileOf = (place: KeeperPlace): string => join(place.directory, "token");
export const settingsFileOf = (place: KeeperPlace): string =>
  join(place.directory, "settings.json");
export const logOf = (place: KeeperPlace): string => join(place.directory, "keeper.log");

/** Makes the directory, with a new token in it. @throws KeeperError `keeper-place` when it is not ours alone. */
export function makePlace(place: KeeperPlace): { token: string } {
  const base = join(place.directory, "..");
  mkdirSync(base, { recursive: true, mode: 0o700 });
  mkdirSync(place.directory, { mode: 0o700 });
  for (const path of [base, place.directory]) refuseIfForeign(path, path === place.directory);
  const token = randomBytes(32).toString("hex");
  writeFileSync(tokenFileOf(place), token, { mode: 0o600 });
  chmodSync(tokenFileOf(place), 0o600);
  return { token };
}

export function readToken(place: KeeperPlace): string {
  try {
    return readFileSync(tokenFileOf(place), "utf8").trim();
  } catch (error) {
    throw new KeeperError(
      "keeper-gone",
      `no keeper at ${place.directory}: its token cannot be read (${(error as Error).message})`,
    );
  }
}

export function removePlace(place: KeeperPlace): void {
  rmSync(place.directory, { recursive: true, force: true });
}

/** Somebody else who owns a directory on the way could put their own socket into it. */
function refuseIfForeign(path: string, mustBePrivate: boolean): void {
  const stat = lstatSync(path);
  const own = process.getuid?.();
  if (!stat.isDirectory() || (own !== undefined && stat.uid !== own && stat.uid !== 0)) {
    throw new KeeperError(
      "keeper-place",
      `${path} is not a directory of this user: refusing to use it`,
    );
  }
  if (mustBePrivate && (stat.mode & 0o077) !== 0) {
    throw new KeeperError(
      "keeper-place",
      `${path} can be entered by other users: refusing to use it`,
    );
  }
}

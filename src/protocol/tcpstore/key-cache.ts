import { byteString } from "./bytes.ts";
import type { ByteString } from "./messages.ts";

const PLACES = 4096;
const LONGEST = 48;

/**
 * Keys that were read lately, to be recognised in their bytes. The same keys come again and again, and a string that
 * exists already costs a third of making one, which the engine then also has to hash for its first look-up. At most
 * 4096 keys of at most 48 bytes are kept; a new one takes the place of another.
 */
export class KeyCache {
  readonly #places: (ByteString | undefined)[] = new Array(PLACES).fill(undefined);

  /** The key in these bytes. */
  read(bytes: Uint8Array, start: number, end: number): ByteString {
    const length = end - start;
    if (length > LONGEST) return byteString(bytes, start, end);
    let hash = length;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
    const place = (hash ^ hash >>> 15) & PLACES - 1;
    const known = this.#places[place];
    if (known !== undefined && known.length === length) {
      let i = 0;
      while (i < length && known.charCodeAt(i) === bytes[start + i]) i++;
      if (i === length) return known;
    }
    return this.#places[place] = byteString(bytes, start, end);
  }
}

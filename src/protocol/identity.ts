/** An engine's ZeroMQ identity: its data-parallel rank as two bytes, little-endian (section 1 of the wire spec). */
import { toHex } from "./hex.ts";
import { type WireRank, wireRank } from "./ranks.ts";
import { type Decoded, decoded, Refused } from "./refusal.ts";

/** Rank 1 is `01 00`, rank 300 is `2c 01`. */
export function encodeIdentity(rank: WireRank): Uint8Array {
  wireRank(rank);
  return Uint8Array.of(rank & 0xff, rank >> 8);
}

/**
 * The rank that an identity names. Exactly two bytes: `02` and `02 00 00` are nobody, although the original's
 * scale-up server takes both for rank 2.
 */
export function decodeIdentity(identity: Uint8Array): Decoded<WireRank> {
  return decoded("identity", () => {
    if (identity.length !== 2) {
      const shown = toHex(identity.subarray(0, 8)) + (identity.length > 8 ? "..." : "");
      const size = identity.length === 1 ? "1 byte" : `${identity.length} bytes`;
      throw new Refused("wrong-identity", "", "two bytes", `${size} (${shown})`);
    }
    return wireRank(identity[0]! | (identity[1]! << 8));
  });
}

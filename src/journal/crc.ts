/** CRC-32 (IEEE 802.3, reflected), portable, eight bytes at a time. */

const TABLES: readonly Int32Array[] = (() => {
  const tables = Array.from({ length: 8 }, () => new Int32Array(256));
  for (let n = 0; n < 256; n++) {
    let c = n;
    for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    tables[0]![n] = c;
  }
  for (let n = 0; n < 256; n++) {
    for (let t = 1; t < 8; t++) {
      const before = tables[t - 1]![n]!;
      tables[t]![n] = tables[0]![before & 0xff]! ^ (before >>> 8);
    }
  }
  return tables;
})();
const [T0, T1, T2, T3, T4, T5, T6, T7] = TABLES as [
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
  Int32Array,
];

/** The CRC-32 of `bytes[from, to)` as an unsigned number. */
export function crc32(bytes: Uint8Array, from = 0, to: number = bytes.length): number {
  let c = -1;
  let i = from;
  for (const last = to - 8; i <= last; i += 8) {
    c ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    c = T7[c & 0xff]! ^ T6[(c >>> 8) & 0xff]! ^ T5[(c >>> 16) & 0xff]! ^ T4[c >>> 24]! ^
      T3[bytes[i + 4]!]! ^ T2[bytes[i + 5]!]! ^ T1[bytes[i + 6]!]! ^ T0[bytes[i + 7]!]!;
  }
  for (; i < to; i++) c = (c >>> 8) ^ T0[(c ^ bytes[i]!) & 0xff]!;
  return ~c >>> 0;
}

/** The CRC-32 of a text of ASCII characters, one byte each. */
export function crc32Ascii(text: string): number {
  let c = -1;
  let i = 0;
  for (const last = text.length - 8; i <= last; i += 8) {
    c ^= text.charCodeAt(i) | (text.charCodeAt(i + 1) << 8) | (text.charCodeAt(i + 2) << 16) |
      (text.charCodeAt(i + 3) << 24);
    c = T7[c & 0xff]! ^ T6[(c >>> 8) & 0xff]! ^ T5[(c >>> 16) & 0xff]! ^ T4[c >>> 24]! ^
      T3[text.charCodeAt(i + 4) & 0xff]! ^ T2[text.charCodeAt(i + 5) & 0xff]! ^
      T1[text.charCodeAt(i + 6) & 0xff]! ^ T0[text.charCodeAt(i + 7) & 0xff]!;
  }
  for (; i < text.length; i++) c = (c >>> 8) ^ T0[(c ^ text.charCodeAt(i)) & 0xff]!;
  return ~c >>> 0;
}

/** The W3C namespace of SCXML. */
export const SCXML_NAMESPACE = "http://www.w3.org/2005/07/scxml";
/** Our own, for what W3C's SCXML has no place for: names of actions, descriptions, tags, meta. */
export const MUSTER_NAMESPACE = "urn:muster:chart:1";

/** `xsd:ID` is an NCName: other characters are written as `_x<hex>_`, and an own `_x` as `_x5f_x`. */
export function toNcName(id: string): string {
  const safe = id.replaceAll(/_(?=x[0-9a-f]+_)|[^A-Za-z0-9_.-]/g, hexOf);
  return /^[A-Za-z_]/.test(safe) ? safe : hexOf(safe[0] ?? "") + safe.slice(1);
}

export function fromNcName(name: string): string {
  return name.replaceAll(
    /_x([0-9a-f]+)_/g,
    (_, hex: string) => String.fromCodePoint(parseInt(hex, 16)),
  );
}

const hexOf = (character: string): string => `_x${(character.codePointAt(0) ?? 0).toString(16)}_`;

/** An event name as one token of an `event` attribute, which is a list separated by white space. */
export const toEventToken = (event: string): string =>
  event.replaceAll(/[\s%]/g, (c) => encodeURIComponent(c));

export const fromEventToken = (token: string): string =>
  token.replaceAll(/%[0-9A-F]{2}/g, (c) => decodeURIComponent(c));

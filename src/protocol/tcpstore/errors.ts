/** Why bytes are not the protocol. Servers count by these codes; the codes are stable. */
export type StoreProtocolCode =
  | "http"
  | "tls"
  | "not-validated"
  | "wrong-magic"
  | "validate-repeated"
  | "unknown-opcode"
  | "key-too-long"
  | "value-too-long"
  | "too-many-keys"
  | "message-too-long"
  | "bad-reply";

/**
 * Bytes that break the protocol (tcpstore-wire, sections 3 and 7). There is no error reply: the connection is to be
 * closed. `offset` counts bytes from the start of the connection.
 */
export class StoreProtocolError extends Error {
  override readonly name = "StoreProtocolError";
  readonly code: StoreProtocolCode;
  readonly offset: number;

  constructor(code: StoreProtocolCode, offset: number, message: string) {
    super(`${message} (byte ${offset} of the connection)`);
    this.code = code;
    this.offset = offset;
  }
}

/**
 * The messages of a TCPStore conversation as plain data. Keys and values are *byte strings*: one character a byte
 * (U+0000 to U+00FF), so that they are JSON, compare with `===` and index a `Map`. 64-bit integers are decimal strings.
 */

/** A string whose characters are bytes (U+0000 to U+00FF). `byteString` and `bytesOf` convert. */
export type ByteString = string;

/** One request as the server understands it. VALIDATE is not among them: it opens a connection and is the codec's own. */
export type StoreRequest =
  | { readonly op: "set"; readonly key: ByteString; readonly value: ByteString }
  | {
    readonly op: "compareSet";
    readonly key: ByteString;
    readonly expected: ByteString;
    readonly desired: ByteString;
  }
  | { readonly op: "get"; readonly key: ByteString }
  | { readonly op: "add"; readonly key: ByteString; readonly delta: string }
  | { readonly op: "check"; readonly keys: readonly ByteString[] }
  | { readonly op: "wait"; readonly keys: readonly ByteString[] }
  | { readonly op: "numKeys" }
  | { readonly op: "deleteKey"; readonly key: ByteString }
  | { readonly op: "append"; readonly key: ByteString; readonly value: ByteString }
  | { readonly op: "multiGet"; readonly keys: readonly ByteString[] }
  | {
    readonly op: "multiSet";
    readonly keys: readonly ByteString[];
    readonly values: readonly ByteString[];
  }
  | { readonly op: "cancelWait" }
  | { readonly op: "ping"; readonly nonce: number }
  | { readonly op: "queuePush"; readonly key: ByteString; readonly value: ByteString }
  | { readonly op: "queuePop"; readonly key: ByteString }
  | { readonly op: "queueLen"; readonly key: ByteString }
  | { readonly op: "listKeys" }
  | { readonly op: "barrier"; readonly key: ByteString; readonly worldSize: string };

/** The name of an operation. */
export type StoreOperation = StoreRequest["op"];

/** A reply. On the wire it has no tag: its shape follows from the request that it answers. */
export type StoreReply =
  | { readonly kind: "integer"; readonly value: string }
  | { readonly kind: "value"; readonly value: ByteString }
  | { readonly kind: "values"; readonly values: readonly ByteString[] }
  | { readonly kind: "nonce"; readonly value: number }
  | { readonly kind: "keys"; readonly keys: readonly ByteString[] }
  /** The length before the pop; the item exactly when that length is above zero. */
  | { readonly kind: "popped"; readonly before: string; readonly item?: ByteString }
  /** CHECK: 0 all present, 1 not. WAIT and BARRIER: 0 go on, 1 cancelled. */
  | { readonly kind: "flag"; readonly value: number };

/** What a reader must know of a request to read its reply. `none`: there is no reply. */
export type ReplyShape =
  | "none"
  | "integer"
  | "value"
  | "nonce"
  | "keys"
  | "popped"
  | "flag"
  | { readonly values: number };

/** How an operand is laid out: `keys` and `pairs` are a u64 count and that many keys, or keys and values in turn. */
export type Operand = "key" | "value" | "u32" | "i64" | "keys" | "pairs";

/** One row of the table of operations (tcpstore-wire, section 2). */
export interface OperationLayout {
  readonly op: StoreOperation;
  readonly code: number;
  readonly operands: readonly Operand[];
  /** `values` stands for as many values as the request names keys. */
  readonly reply: Exclude<ReplyShape, { values: number }> | "values";
}

const row = (
  code: number,
  op: StoreOperation,
  operands: readonly Operand[],
  reply: OperationLayout["reply"],
): OperationLayout => ({ code, op, operands, reply });

/** Every operation of the protocol but VALIDATE, in the order of their codes. */
export const OPERATIONS: readonly OperationLayout[] = [
  row(1, "set", ["key", "value"], "none"),
  row(2, "compareSet", ["key", "value", "value"], "value"),
  row(3, "get", ["key"], "value"),
  row(4, "add", ["key", "i64"], "integer"),
  row(5, "check", ["keys"], "flag"),
  row(6, "wait", ["keys"], "flag"),
  row(7, "numKeys", [], "integer"),
  row(8, "deleteKey", ["key"], "integer"),
  row(9, "append", ["key", "value"], "none"),
  row(10, "multiGet", ["keys"], "values"),
  row(11, "multiSet", ["pairs"], "none"),
  row(12, "cancelWait", [], "flag"),
  row(13, "ping", ["u32"], "nonce"),
  row(14, "queuePush", ["key", "value"], "none"),
  row(15, "queuePop", ["key"], "popped"),
  row(16, "queueLen", ["key"], "integer"),
  row(17, "listKeys", [], "keys"),
  row(18, "barrier", ["key", "i64"], "flag"),
];

/** The opcode of VALIDATE, the first request of a connection. */
export const VALIDATE_CODE = 0;
/** The operand of VALIDATE; its bytes on the wire are `ce f7 85 3c`. */
export const VALIDATE_MAGIC = 0x3c85f7ce;
/** CHECK: every key is there. WAIT and BARRIER: go on. */
export const FLAG_READY = 0;
/** CHECK: some key is missing. WAIT and BARRIER: cancelled. */
export const FLAG_NOT_READY = 1;

const BY_NAME: ReadonlyMap<StoreOperation, OperationLayout> = new Map(
  OPERATIONS.map((each) => [each.op, each]),
);

/** The layout of an operation. */
export function layoutOf(op: StoreOperation): OperationLayout {
  return BY_NAME.get(op)!;
}

/** The shape of the reply to a request. */
export function replyShapeOf(request: StoreRequest): ReplyShape {
  const { reply } = layoutOf(request.op);
  if (reply !== "values") return reply;
  return { values: request.op === "multiGet" ? request.keys.length : 0 };
}

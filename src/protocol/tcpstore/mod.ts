/**
 * The wire protocol of PyTorch's TCPStore (tcpstore-wire, sections 1 to 7): bytes to messages and back, both sides,
 * incremental, with limits that are checked as soon as a length can be read. No I/O and no state of the store.
 * @module
 */
export { bytesOf, byteString, fromHex, hexOf, textOf, utf8 } from "./bytes.ts";
export { encodeReply, encodeRequest, encodeValidate, replyBytes } from "./encode.ts";
export { type StoreProtocolCode, StoreProtocolError } from "./errors.ts";
export type { Allocate } from "./incoming.ts";
export { KeyCache } from "./key-cache.ts";
export { REPLY_LIMITS, REQUEST_LIMITS, type StoreLimits } from "./limits.ts";
export {
  type ByteString,
  FLAG_NOT_READY,
  FLAG_READY,
  layoutOf,
  type Operand,
  type OperationLayout,
  OPERATIONS,
  type ReplyShape,
  replyShapeOf,
  type StoreOperation,
  type StoreReply,
  type StoreRequest,
  VALIDATE_CODE,
  VALIDATE_MAGIC,
} from "./messages.ts";
export { ReplyDecoder } from "./reply-decoder.ts";
export { RequestDecoder } from "./request-decoder.ts";

import { i64Text, u32Text, u64Text } from "./integers.ts";
import {
  type ByteString,
  layoutOf,
  type StoreReply,
  type StoreRequest,
  VALIDATE_CODE,
  VALIDATE_MAGIC,
} from "./messages.ts";

/**
 * What a client sends first. A PING is to follow in the same write: torch's libuv server closes a connection whose
 * VALIDATE comes in two reads (tcpstore-wire, section 3).
 */
export function encodeValidate(): ByteString {
  return String.fromCharCode(VALIDATE_CODE) + u32Text(VALIDATE_MAGIC);
}

/** The bytes of a request. */
export function encodeRequest(request: StoreRequest): ByteString {
  const opcode = String.fromCharCode(layoutOf(request.op).code);
  switch (request.op) {
    case "set":
    case "append":
    case "queuePush":
      return opcode + counted(request.key) + counted(request.value);
    case "compareSet":
      return opcode + counted(request.key) + counted(request.expected) + counted(request.desired);
    case "get":
    case "deleteKey":
    case "queuePop":
    case "queueLen":
      return opcode + counted(request.key);
    case "add":
      return opcode + counted(request.key) + i64Text(request.delta);
    case "barrier":
      return opcode + counted(request.key) + i64Text(request.worldSize);
    case "check":
    case "wait":
    case "multiGet":
      return opcode + u64Text(request.keys.length) + all(request.keys);
    case "multiSet": {
      const { keys, values } = request;
      if (keys.length !== values.length) {
        throw new RangeError(`multiSet of ${keys.length} keys and ${values.length} values`);
      }
      let pairs = u64Text(keys.length);
      for (let i = 0; i < keys.length; i++) pairs += counted(keys[i]!) + counted(values[i]!);
      return opcode + pairs;
    }
    case "ping":
      return opcode + u32Text(request.nonce);
    default:
      return opcode;
  }
}

/** The bytes of a reply. */
export function encodeReply(reply: StoreReply): ByteString {
  switch (reply.kind) {
    case "integer":
      return i64Text(reply.value);
    case "value":
      return counted(reply.value);
    case "values":
      return all(reply.values);
    case "nonce":
      return u32Text(reply.value);
    case "keys":
      return u64Text(reply.keys.length) + all(reply.keys);
    case "popped":
      return i64Text(reply.before) + (reply.item === undefined ? "" : counted(reply.item));
    case "flag":
      return FLAGS[reply.value]!;
  }
}

/** How many bytes `encodeReply` will make, without making them. */
export function replyBytes(reply: StoreReply): number {
  switch (reply.kind) {
    case "integer":
      return 8;
    case "value":
      return 8 + reply.value.length;
    case "values":
      return total(reply.values);
    case "nonce":
      return 4;
    case "keys":
      return 8 + total(reply.keys);
    case "popped":
      return 8 + (reply.item === undefined ? 0 : 8 + reply.item.length);
    case "flag":
      return 1;
  }
}

const FLAGS: readonly ByteString[] = ["\x00", "\x01"];
const counted = (text: ByteString): ByteString => u64Text(text.length) + text;

function all(texts: readonly ByteString[]): ByteString {
  let bytes = "";
  for (const each of texts) bytes += counted(each);
  return bytes;
}

function total(texts: readonly ByteString[]): number {
  let bytes = 0;
  for (const each of texts) bytes += 8 + each.length;
  return bytes;
}

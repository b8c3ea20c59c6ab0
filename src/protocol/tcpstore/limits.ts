/** What a decoder accepts. A violation is an error as soon as the offending length can be read. */
export interface StoreLimits {
  /** Longest key on the wire, bytes (torch's libuv server: 8192). */
  readonly maxKeyBytes: number;
  /** Longest value, bytes (torch's libuv server: 8 MiB). */
  readonly maxValueBytes: number;
  /** Most keys of one request (torch's libuv server: 131072). */
  readonly maxKeys: number;
  /** Longest whole message, bytes. Torch has no such limit. */
  readonly maxMessageBytes: number;
}

/** Requests: the limits of torch's libuv server, and 64 MiB for a whole request. */
export const REQUEST_LIMITS: StoreLimits = {
  maxKeyBytes: 8192,
  maxValueBytes: 8 * 1024 * 1024,
  maxKeys: 131_072,
  maxMessageBytes: 64 * 1024 * 1024,
};

/** Replies: a client may meet values that another server took without a limit. */
export const REPLY_LIMITS: StoreLimits = {
  maxKeyBytes: 1024 * 1024,
  maxValueBytes: 256 * 1024 * 1024,
  maxKeys: 16_777_216,
  maxMessageBytes: 256 * 1024 * 1024,
};

import { Buffer } from "node:buffer";
import { writeSync } from "node:fs";

const clock = new Int32Array(new SharedArrayBuffer(4));

/**
 * Says a line on the output, now: it has left when the next statement runs, which may be the last one. A reader that has other things to do is
 * waited for, also where the runtime has made the pipe one that does not block.
 */
export function say(text: string): void {
  const bytes = Buffer.from(`${text}\n`);
  for (let done = 0; done < bytes.length;) {
    try {
      done += writeSync(1, bytes, done);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      if (code !== "EAGAIN" && !/os error 11|temporarily unavailable/.test(message)) throw error;
      Atomics.wait(clock, 0, 0, 2);
    }
  }
}

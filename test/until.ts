/**
 * Waits for something that the world is about to do: resolves with what `check` finds, at most a minute later. What is awaited is a
 * condition and never a time, so that a busy machine makes a test slower and not wrong.
 */
export async function until<T>(
  check: () => T | undefined | false | Promise<T | undefined | false>,
  what: string = String(check),
): Promise<T> {
  for (const end = Date.now() + 60_000;;) {
    const found = await check();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`not within a minute: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

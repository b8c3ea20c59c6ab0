import type { Header } from "../record.ts";

/** `<fence>-<first>.jsonl`: names sort in the order in which segments count. */
export const segmentName = (header: Pick<Header, "fence" | "first">): string =>
  `${String(header.fence).padStart(6, "0")}-${String(header.first).padStart(12, "0")}.jsonl`;

/** What `POST /scale_elastic_ep` takes, checked as the original does and in its words (wire spec, 6.4 and 7.9). */

export interface ScaleRequest {
  readonly target: number;
  /** Seconds that ranks which leave are given to finish their requests; undefined where nobody asked for that. */
  readonly drainTimeout: number | undefined;
  readonly operation: string | undefined;
  readonly expectedInstance: string | undefined;
  /** Ours: for the whole operation. */
  readonly deadlineMs: number | undefined;
  readonly retire: readonly number[] | undefined;
}

export type Checked = { readonly ok: true; readonly value: ScaleRequest } | {
  readonly ok: false;
  readonly detail: string;
};

const LONGEST_NAME = 256;

const isPositive = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value > 0;

/** Reads a body. */
export function scaleRequestOf(text: string): Checked {
  const refuse = (detail: string): Checked => ({ ok: false, detail });
  let body: Record<string, unknown>;
  try {
    body = JSON.parse(text);
  } catch {
    return refuse("Invalid JSON format");
  }
  if (body === null || typeof body !== "object" || Array.isArray(body)) {
    return refuse("Invalid JSON format");
  }
  const target = body["new_data_parallel_size"];
  const drainTimeout = body["drain_timeout"] ?? undefined;
  if (target === undefined || target === null) {
    return refuse("new_data_parallel_size is required");
  }
  if (!isPositive(target)) return refuse("new_data_parallel_size must be a positive integer");
  if (drainTimeout !== undefined && !isPositive(drainTimeout)) {
    return refuse("drain_timeout must be a positive integer");
  }
  for (const name of ["operation_id", "expected_instance_id"]) {
    const value = body[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== "string" || value === "" || value.length > LONGEST_NAME) {
      return refuse(`${name} must be a non-empty string of at most ${LONGEST_NAME} characters`);
    }
  }
  const operation = body["operation_id"] ?? undefined;
  if (typeof operation === "string" && !/^[\w.:-]+$/.test(operation)) {
    return refuse("operation_id may have letters, digits and . : _ - only");
  }
  const deadlineMs = body["deadline_ms"] ?? undefined;
  if (deadlineMs !== undefined && !isPositive(deadlineMs)) {
    return refuse("deadline_ms must be a positive integer");
  }
  const retire = body["retire"] ?? undefined;
  if (
    retire !== undefined &&
    !(Array.isArray(retire) && retire.every((r) => Number.isInteger(r) && r >= 0))
  ) {
    return refuse("retire must be a list of ranks");
  }
  return {
    ok: true,
    value: {
      target,
      drainTimeout,
      operation: operation as string | undefined,
      expectedInstance: (body["expected_instance_id"] ?? undefined) as string | undefined,
      deadlineMs: deadlineMs as number | undefined,
      retire: retire as number[] | undefined,
    },
  };
}

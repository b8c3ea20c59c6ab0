/** What the original says about a failed start-up (wire spec, section 2.4), for `strict: "upstream"`. */
import type { Failure, RunConfiguration } from "../machines/mod.ts";

const STATES: Readonly<Record<string, string>> = {
  connect: "NEW",
  load: "CONNECTED",
  serve: "READY",
};

/** The original's text, or null where it ends with an error of its interpreter. */
export function upstreamText(
  failure: Failure,
  rank: number | null,
  configuration: RunConfiguration,
): string | null {
  const { detail } = failure;
  const local = configuration.ranks.find((r) => r.rank === rank)?.local ?? true;
  const where = local ? "local" : "remote";
  switch (failure.code) {
    case "stranger":
      return detail["kind"] === "rank"
        ? `Message from engine with unexpected data parallel rank: ${
          /\d+/.exec(String(detail["sample"]))?.[0]
        }`
        : null;
    case "engine-refused":
      switch (detail["reason"]) {
        case "wrong-locality":
          return `${detail["message"]} message from ${
            local ? "remote" : "local"
          } engine ${rank}, expected it to be ${where}`;
        case "must-not-be-headless":
          return `Remote engine ${rank} must not use --headless in external or hybrid dp lb mode`;
        case "must-be-headless":
          return `Remote engine ${rank} must use --headless unless in external or hybrid dp lb mode`;
        case "unexpected":
          return `Unexpected ${
            detail["message"]
          } message for ${where} engine ${rank} in CoreEngineState.${
            STATES[failure.phase ?? "connect"]
          } state.`;
        default:
          return null;
      }
    case "configuration-mismatch":
      if (detail["blocks"] === null) return null;
      return `Configuration mismatch detected for engine ${rank}. All DP workers must have identical configurations for parameters that affect collective communication (e.g., enable_eplb, eplb_config.log_balancedness). Worker hash: ${
        detail["hash"] ?? "None"
      }, Expected hash: ${configuration.parallelConfigHash}. Please ensure all workers are started with the same command-line arguments.`;
    case "engine-exited":
      return `Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP${rank}': ${
        detail["code"] ?? detail["signal"]
      }}`;
    default:
      return null;
  }
}

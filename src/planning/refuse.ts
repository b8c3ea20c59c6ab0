import { type ClusterConfig, shown } from "./config.ts";
import { flagOf, type Refusal, type RefusalCode } from "./refusal.ts";

/** A refusal about one setting of a configuration, with its flag and value filled in. */
export const refuse = (
  config: ClusterConfig,
  code: RefusalCode,
  setting: keyof ClusterConfig,
  text: { readonly message: string; readonly fix: string; readonly upstream?: string },
): Refusal => ({ code, flag: flagOf(setting), value: shown(config[setting]), ...text });

import { agreement as agreementModel } from "../agreement.ts";
import type { UpstreamDefect } from "./defect.ts";

export const agreement: UpstreamDefect = {
  name: "agreement",
  number: 40,
  what:
    "No object decides about the commit: a rank that votes, crashes and presumes abort has diverged from those that went on.",
  ours:
    "One write-once key decides; whoever voted is in doubt until it can be read, and does what it says.",
  model: agreementModel({ ranks: 2, original: [0, 1] }),
  property: "no rank commits while another aborts",
  steps: 4,
};

/** The configuration of a run of two remote engines, as input 1 of its journal. */
import { DEFAULT_LIMITS, type RunConfiguration } from "../../src/machines/mod.ts";

export const configuration: RunConfiguration = {
  type: "configured",
  size: 2,
  mode: "internal",
  ranks: [0, 1].map((rank) => ({ rank, local: false, headless: true })),
  launches: [],
  sockets: {
    handshake: "tcp://h:29550",
    clients: [{ input: "tcp://h:0", output: "tcp://h:0", ours: true }],
    coordinator: null,
  },
  parallelConfig: null,
  parallelConfigHash: null,
  comparesHashes: false,
  waves: "off",
  strict: "muster",
  onFailure: "hold",
  leaseMs: 0,
  limits: DEFAULT_LIMITS,
};

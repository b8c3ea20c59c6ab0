/** Metrics in Prometheus' format, read when they are asked for. */
import { Counter, Gauge, Registry } from "prom-client";
import { serves } from "../view/status.ts";
import type { ServiceCluster } from "./app.ts";

export class Metrics {
  readonly #registry = new Registry();
  readonly #cluster: ServiceCluster;
  readonly #ended: Counter<"outcome">;

  constructor(cluster: ServiceCluster) {
    this.#cluster = cluster;
    const registers = [this.#registry];
    const gauge = (name: string, help: string, read: () => number) =>
      new Gauge({
        name: `muster_${name}`,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    gauge("data_parallel_size", "Ranks of the topology that serves", () => this.#size());
    gauge(
      "formed",
      "1 while the cluster serves",
      () => serves(this.#cluster.status()) ? 1 : 0,
    );
    gauge("inputs", "Inputs in the journal", () => this.#cluster.status().seq);
    gauge("scaling", "1 while an operation runs", () => this.#scaling()?.running ? 1 : 0);
    gauge(
      "scaling_in_doubt",
      "1 while nobody can say how the running operation ends",
      () => this.#scaling()?.running?.phase === "inDoubt" ? 1 : 0,
    );
    gauge(
      "engines_to_restart",
      "Engines that the last operation left unusable",
      () => this.#scaling()?.last?.enginesToRestart.length ?? 0,
    );
    new Gauge({
      name: "muster_ranks",
      help: "Ranks by state",
      labelNames: ["state"],
      registers,
      collect() {
        this.reset();
        for (const { state } of cluster.status().ranks) this.inc({ state });
      },
    });
    this.#ended = new Counter({
      name: "muster_operations_total",
      help: "Scaling operations that ended since this process began, by outcome",
      labelNames: ["outcome"],
      registers,
    });
  }

  ended(outcome: string): void {
    this.#ended.inc({ outcome });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  #scaling(): ReturnType<NonNullable<ServiceCluster["scaling"]>["status"]> | undefined {
    return this.#cluster.scaling?.status();
  }

  #size(): number {
    return this.#scaling()?.size ?? this.#cluster.status().ranks.length;
  }
}

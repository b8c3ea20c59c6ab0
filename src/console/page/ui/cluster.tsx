import { useState } from "preact/hooks";
import type { ClusterStatus, RankStatus } from "../../../view/mod.ts";
import { duration, exitText } from "../../../view/mod.ts";
import type { Observation } from "../../source.ts";
import { waitOf } from "../../model/verdict.ts";
import { useNow, useStore } from "../hooks.ts";
import { goTo, moment, update } from "../store.ts";
import { clock, count } from "../words.ts";
import { Operations } from "./operation.tsx";

const BAD = new Set<RankStatus["state"]>(["late", "lost", "restarted"]);
const FEW = 100;

/** Every rank with its state, since when, what it waits for, and what went wrong. */
export function ClusterView() {
  const state = useStore();
  const now = moment()!;
  const live = state.connection === "live" && state.seq === undefined;
  const at = useNow(live, now.at);
  const { status } = now;
  return (
    <>
      <Operations />
      <Failure status={status} />
      <Ranks status={status} at={at} />
      <Processes status={status} at={at} />
      <Facts status={status} />
    </>
  );
}

function Ranks({ status, at }: { status: ClusterStatus; at: number }) {
  const [all, setAll] = useState(false);
  const { observations } = useStore();
  const loads = loadsOf(observations);
  const sorted = [...status.ranks].sort((a, b) => urgency(a) - urgency(b) || a.rank - b.rank);
  const shown = all ? sorted : sorted.slice(0, FEW);
  const states = new Map<string, number>();
  for (const { state } of status.ranks) states.set(state, (states.get(state) ?? 0) + 1);
  return (
    <section aria-labelledby="ranks-title">
      <h2 id="ranks-title">
        Ranks <small>{[...states].map(([name, n]) => `${n} ${name}`).join(", ")}</small>
      </h2>
      <div
        class="dots"
        role="img"
        aria-label={[...states].map(([name, n]) => `${n} ranks ${name}`).join(", ")}
      >
        {status.ranks.length > 16 &&
          status.ranks.map((rank) => (
            <i
              key={rank.rank}
              class={`dot ${rank.state}`}
              title={`rank ${rank.rank}: ${rank.state}`}
            />
          ))}
      </div>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Rank</th>
            <th scope="col">State</th>
            <th scope="col">Since</th>
            <th scope="col">Waits for</th>
            <th scope="col">Process</th>
            <th scope="col">Cache blocks</th>
            {loads.size > 0 && <th scope="col">Load</th>}
            <th scope="col">Remarks</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((rank) => (
            <tr key={rank.rank} class={BAD.has(rank.state) ? "bad" : undefined}>
              <th scope="row" data-label="Rank">
                <button
                  type="button"
                  class="link"
                  onClick={() => update({ view: "charts", of: `rank/${rank.rank}/engine` })}
                >
                  rank {rank.rank}
                </button>
              </th>
              <td data-label="State">
                <span class={`state ${rank.state}`}>{rank.state}</span>
              </td>
              <td data-label="Since">{duration(Math.max(0, at - rank.since))}</td>
              <td data-label="Waits for">{waitOf(rank) || "–"}</td>
              <td data-label="Process">
                {rank.launch === null
                  ? "not ours"
                  : `${rank.launch}${rank.pid === null ? "" : `, pid ${rank.pid}`}`}
              </td>
              <td data-label="Cache blocks">{rank.blocks?.toLocaleString("en") ?? "–"}</td>
              {loads.size > 0 && <td data-label="Load">{loads.get(rank.rank) ?? "–"}</td>}
              <td data-label="Remarks">{remarks(rank)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > shown.length && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {count(sorted.length, "rank")}
        </button>
      )}
    </section>
  );
}

const urgency = (rank: RankStatus): number =>
  BAD.has(rank.state) ? 0 : rank.state === "ready" ? 2 : 1;

/** Requests that run and wait on each rank, where the source is a running coordinator. */
function loadsOf(observations: readonly Observation[]): ReadonlyMap<number, string> {
  const loads = new Map<number, string>();
  for (const seen of observations) {
    if (seen.type !== "load") continue;
    const rows = seen["rows"] as readonly { waiting: number; running: number }[];
    rows.forEach((row, rank) => loads.set(rank, `${row.running} running, ${row.waiting} waiting`));
  }
  return loads;
}

function remarks(rank: RankStatus): string {
  return [
    rank.takeovers > 0 ? `started anew ${rank.takeovers} ×` : "",
    rank.refused ? `refused ${rank.refused.count} ×: ${rank.refused.reason}` : "",
  ].filter(Boolean).join("; ") || "–";
}

/** The first failure with its whole record. */
function Failure({ status }: { status: ClusterStatus }) {
  const { failure } = status;
  if (failure === null) return null;
  return (
    <section class="failure" aria-labelledby="failure-title">
      <h2 id="failure-title">First failure</h2>
      <dl class="facts">
        <Fact name="Code" value={failure.code} />
        <Fact
          name="Rank"
          value={failure.rank === null ? "none in particular" : String(failure.rank)}
        />
        <Fact name="Phase" value={failure.phase ?? "–"} />
        <Fact name="Waited" value={duration(failure.waitedMs)} />
        <Fact name="At" value={clock(failure.at)} />
        <div>
          <dt>Record</dt>
          <dd>
            <button type="button" class="link" onClick={() => goTo(failure.seq)}>
              {failure.seq}
            </button>
          </dd>
        </div>
        {failure.missing.length > 0 && (
          <Fact
            name="Not ready"
            value={failure.missing.map((m) => `rank ${m.rank} (${m.state})`).join(", ")}
          />
        )}
        {failure.upstream && <Fact name="The original says" value={failure.upstream} />}
      </dl>
      {failure.tail.length > 0 && (
        <>
          <h3>Last lines of its process</h3>
          <pre tabIndex={0} aria-label="Last lines of its process">{failure.tail.join("\n")}</pre>
        </>
      )}
    </section>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Processes({ status, at }: { status: ClusterStatus; at: number }) {
  if (status.processes.length === 0) return null;
  return (
    <section aria-labelledby="processes-title">
      <h2 id="processes-title">Processes</h2>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Launch</th>
            <th scope="col">Ranks</th>
            <th scope="col">State</th>
            <th scope="col">Since</th>
            <th scope="col">Pid</th>
            <th scope="col">Exit</th>
          </tr>
        </thead>
        <tbody>
          {status.processes.map((p) => (
            <tr key={p.launch}>
              <th scope="row" data-label="Launch">{p.launch}</th>
              <td data-label="Ranks">{p.ranks.join(", ")}</td>
              <td data-label="State">{p.state}</td>
              <td data-label="Since">{duration(Math.max(0, at - p.since))}</td>
              <td data-label="Pid">{p.pid ?? "–"}</td>
              <td data-label="Exit">{p.exit === null ? "–" : exitText(p.exit)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Facts({ status }: { status: ClusterStatus }) {
  const endpoints = Object.entries(status.endpoints).flatMap(([socket, parts]) =>
    Object.entries(parts).map(([part, endpoint]) => [`${socket} ${part}`, endpoint] as const)
  );
  if (endpoints.length === 0 && status.blocks === null) return null;
  return (
    <section aria-labelledby="facts-title">
      <h2 id="facts-title">Addresses and cache</h2>
      <dl class="facts">
        {status.blocks && (
          <Fact
            name="Cache blocks"
            value={`${status.blocks.sum.toLocaleString("en")} in all, ${
              status.blocks.min.toLocaleString("en")
            } ${
              status.blocks.min === status.blocks.max
                ? "each"
                : `to ${status.blocks.max.toLocaleString("en")} a rank`
            }`}
          />
        )}
        {endpoints.map(([name, value]) => <Fact key={name} name={name} value={value} />)}
      </dl>
    </section>
  );
}

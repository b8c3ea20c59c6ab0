import { useState } from "preact/hooks";
import { whatNext } from "../../model/next.ts";
import { useStore } from "../hooks.ts";
import { moment } from "../store.ts";
import { waitOf } from "../../model/verdict.ts";

const FEW = 60;

/** For every instance: what may happen next, and what each waits for. */
export function NextView() {
  useStore();
  const [all, setAll] = useState(false);
  const now = moment()!;
  const instances = whatNext(now);
  const waiting = now.status.ranks.filter((rank) => waitOf(rank) !== "");
  const shown = all ? instances : instances.slice(0, FEW);
  return (
    <section aria-label="What next">
      {waiting.length > 0 && (
        <ul class="waits">
          {waiting.slice(0, FEW).map((rank) => (
            <li key={rank.rank}>
              <b>rank {rank.rank}</b> waits for {waitOf(rank)}
            </li>
          ))}
        </ul>
      )}
      <div class="next">
        {shown.map((instance) => (
          <article key={instance.instance}>
            <h3>
              {instance.instance} <small>is {instance.state}</small>
            </h3>
            {instance.owed.map((call) => (
              <p class="remark" key={call}>owed: the outcome of {call}</p>
            ))}
            {instance.done ? <p class="quiet">Nothing changes it any more.</p> : (
              <table>
                <thead>
                  <tr>
                    <th scope="col">When</th>
                    <th scope="col">Then</th>
                  </tr>
                </thead>
                <tbody>
                  {instance.possible.map((p, i) => (
                    <tr key={i}>
                      <td>
                        {p.when}
                        {p.guard && <span class="quiet">{` if ${p.guard}`}</span>}
                      </td>
                      <td>{p.leads}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </article>
        ))}
      </div>
      {instances.length > shown.length && (
        <button type="button" onClick={() => setAll(true)}>Show all {instances.length}</button>
      )}
    </section>
  );
}

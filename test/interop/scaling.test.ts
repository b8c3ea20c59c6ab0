/**
 * Mixed clusters: ranks of ours among ranks that behave as the original's, over torch's TCPStore and msgspec. Ours as rank 0, and the reverse; up and
 * down; success, and each failure at a rank of either side. Agreement is promised where all old ranks are ours; here the same bytes are
 * spoken, and ours say what they know.
 *
 * The table below is complete: a test holds every cell of role, direction and scenario against it, and says why where there is none.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Ending, type Mixed, scale } from "./mixed.ts";
import { Originals } from "./originals.ts";
import { missing } from "./python.ts";

type Role = "ours leads" | "ours follows";
type Direction = "up" | "down";

const SCENARIOS = [
  "success",
  "an original rank is killed before it is prepared",
  "an original rank is killed before its vote",
  "an original rank is killed after its vote",
  "an original rank is silent",
  "an original rank's engine cannot prepare",
  "an original rank's engine cannot pause",
  "an original rank's engine cannot switch",
  "an original rank's engine does not resume",
  "an original rank hears late of an earlier operation",
  "an original rank 0 dies between two writes",
  "an original rank 0 dies when its end is half written",
  "ours is killed before it is prepared",
  "ours is killed before it is prepared, and comes back",
  "ours is killed after its vote, and comes back",
  "ours is silent: its engine does not answer",
  "ours: its engine cannot prepare",
  "ours: its engine cannot pause",
  "ours: its engine cannot switch",
  "ours: its engine does not resume",
  "ours hears late of an earlier operation",
  "ours as rank 0 dies between two writes, and comes back",
  "ours as rank 0 dies between two writes, and takes its store with it",
  "ours is asked to abort before its vote",
  "ours is asked to abort after its vote",
  "a stranger comes to the scale-up port",
  "what failed is asked for again",
] as const;
type Scenario = (typeof SCENARIOS)[number];

interface Cell {
  readonly mixed: Mixed;
  readonly ours: Ending["ours"];
  readonly theirs: Ending["theirs"];
  /** What ours gives as its cause. */
  readonly text?: RegExp;
  readonly restart?: readonly number[];
  /** Why it ends so, where that is not plain. */
  readonly because?: string;
  readonly again?: Pick<Ending, "ours" | "theirs">;
}

type Cells = Readonly<Record<Direction, Cell | string>>;

// ---- who takes part ---------------------------------------------------------------------------------------------

/** Ours is rank 0; 1 and 2 are the original's. Down: rank 2 leaves. Up: rank 3 comes. */
const LEADS = {
  up: { ours: [0], from: 3, to: 4 },
  down: { ours: [0], from: 3, to: 2 },
} as const;
/** Ours is rank 1; 0 and 2 are the original's. */
const FOLLOWS = {
  up: { ours: [1], from: 3, to: 4 },
  down: { ours: [1], from: 3, to: 2 },
} as const;

type More = Omit<Mixed, "ours" | "from" | "to">;
type Expected = Omit<Cell, "mixed">;

const both = (
  groups: typeof LEADS | typeof FOLLOWS,
  more: More,
  expected: Expected,
): Cells => ({
  up: {
    mixed: { ...groups.up, ...more },
    ...expected,
    theirs: whoLeaves(expected.theirs, "up"),
  },
  down: {
    mixed: { ...groups.down, ...more },
    ...expected,
    theirs: whoLeaves(expected.theirs, "down"),
  },
});
const leads = (more: More, expected: Expected): Cells => both(LEADS, more, expected);
const follows = (more: More, expected: Expected): Cells => both(FOLLOWS, more, expected);
const never = (why: string): Cells => ({ up: why, down: why });

/** How all ranks of a group end alike. */
const ofLeads = (ours: string, one: string, two: string): Expected => ({
  ours: { 0: ours },
  theirs: { 1: one, 2: two },
});
const ofFollows = (zero: string, ours: string, two: string): Expected => ({
  ours: { 1: ours },
  theirs: { 0: zero, 2: two },
});

/** Whether an original rank has read an error by the time that it ends well is a matter of its back-off. */
const EITHER = "completed or failed";
/** One that leaves ends with its own shutdown, and waits for nobody; one that stays does not. */
const LEAVER = "leaver";
const whoLeaves = (theirs: Ending["theirs"], direction: Direction): Ending["theirs"] =>
  Object.fromEntries(
    Object.entries(theirs).map(([rank, outcome]) => [
      rank,
      outcome !== LEAVER ? outcome : direction === "down" ? EITHER : "failed",
    ]),
  );

const NO_ORIGINAL_LEADER = "rank 0 is ours here: that row is about an original one";
const NO_LEADER_OF_OURS = "ours is not rank 0 here: that row is about ours as rank 0";

// ---- the table --------------------------------------------------------------------------------------------------

const TABLE: Readonly<Record<Scenario, Readonly<Record<Role, Cells>>>> = {
  "success": {
    "ours leads": leads({}, ofLeads("completed", "completed", "completed")),
    "ours follows": follows({}, ofFollows("completed", "completed", "completed")),
  },
  "an original rank is killed before it is prepared": {
    "ours leads": leads({ theirs: { 1: "dies-before-prepared" } }, {
      ...ofLeads("failed", "died", "failed"),
      because: "the first one whose time is over fails, and the other reads its error",
    }),
    "ours follows": {
      up: {
        mixed: { ...FOLLOWS.up, theirs: { 2: "dies-before-prepared" } },
        ...ofFollows("failed", "failed", "died"),
        text: /Timed out waiting for external Elastic EP ranks to prepare/,
      },
      down: {
        mixed: { ...FOLLOWS.down, theirs: { 2: "dies-before-prepared" } },
        ...ofFollows("failed", "failed", "died"),
        because: "nobody waits for the engine of one that leaves: rank 0 ends it at the barrier",
        text: /Timed out waiting for external Elastic EP drains/,
      },
    },
  },
  "an original rank is killed before its vote": {
    "ours leads": leads({ theirs: { 1: "dies-before-vote" } }, {
      ...ofLeads("failed", "died", "failed"),
      because: "rank 2 gives up at the barrier, so nobody can have committed",
    }),
    "ours follows": follows({ theirs: { 2: "dies-before-vote" } }, {
      ...ofFollows("failed", "failed", "died"),
      text: /Timed out waiting for external Elastic EP drains/,
    }),
  },
  "an original rank is killed after its vote": {
    "ours leads": leads({ theirs: { 1: "dies-after-vote" } }, {
      ...ofLeads("failed", "died", LEAVER),
      because: "without its finish nothing is completed, and rank 0 says so",
      text: /Timed out waiting for all old ranks to finish/,
      restart: [0],
    }),
    "ours follows": follows({ theirs: { 2: "dies-after-vote" } }, {
      ...ofFollows("failed", "failed", "died"),
      text: /Timed out waiting for all old ranks to finish/,
      restart: [1],
    }),
  },
  "an original rank is silent": {
    "ours leads": {
      up: {
        mixed: { ...LEADS.up, theirs: { 2: "silent" } },
        ...ofLeads("failed", "failed", "silent"),
      },
      down: {
        mixed: { ...LEADS.down, theirs: { 1: "silent" } },
        ...ofLeads("failed", "silent", "failed"),
      },
    },
    "ours follows": {
      up: {
        mixed: { ...FOLLOWS.up, theirs: { 0: "silent" } },
        ...ofFollows("silent", "failed", "failed"),
        text: /Timed out waiting for rank 0 to publish/,
        restart: [],
      },
      down: {
        mixed: { ...FOLLOWS.down, theirs: { 2: "silent" } },
        ...ofFollows("failed", "failed", "silent"),
        text: /Timed out waiting for external Elastic EP drains/,
      },
    },
  },
  "an original rank's engine cannot prepare": {
    "ours leads": leads({ theirs: { 1: "reinitialize" } }, {
      ...ofLeads("failed", "failed", "failed"),
      text: /reinitialize_distributed method failed: on demand/,
    }),
    "ours follows": follows({ theirs: { 0: "reinitialize" } }, {
      ...ofFollows("failed", "failed", "failed"),
    }),
  },
  "an original rank's engine cannot pause": {
    "ours leads": leads({ theirs: { 1: "after-vote" } }, {
      ...ofLeads("failed", "failed", LEAVER),
      text: /pause_scheduler method failed: on demand/,
    }),
    "ours follows": follows({ theirs: { 0: "after-vote" } }, {
      ...ofFollows("failed", "failed", LEAVER),
      text: /pause_scheduler method failed: on demand/,
    }),
  },
  "an original rank's engine cannot switch": {
    "ours leads": leads({ theirs: { 1: "commit" } }, {
      ...ofLeads("failed", "failed", LEAVER),
      text: /commit_prepared_elastic_ep method failed: on demand/,
    }),
    "ours follows": follows({ theirs: { 0: "commit" } }, {
      ...ofFollows("failed", "failed", LEAVER),
      text: /commit_prepared_elastic_ep method failed: on demand/,
    }),
  },
  "an original rank's engine does not resume": {
    "ours leads": {
      up: {
        mixed: { ...LEADS.up, theirs: { 1: "resume" } },
        ...ofLeads("completed", "failed", EITHER),
        because:
          "it is completed when that rank writes an error all the same: its own step after the end, which nobody can keep it from",
      },
      down: {
        mixed: { ...LEADS.down, theirs: { 1: "resume" } },
        ...ofLeads("completed", "failed", "completed"),
      },
    },
    "ours follows": {
      up: {
        mixed: { ...FOLLOWS.up, theirs: { 2: "resume" } },
        ...ofFollows("completed", "completed", "failed"),
      },
      down: {
        mixed: { ...FOLLOWS.down, theirs: { 0: "resume" } },
        ...ofFollows("failed", "completed", "completed"),
        because: "rank 0 itself wrote completed, and then an error",
      },
    },
  },
  "an original rank hears late of an earlier operation": {
    "ours leads": leads({ theirs: { 1: "late-notification" } }, {
      ...ofLeads("completed", "silent", "completed"),
      because: "it writes the finish of this epoch for the word about another, and never switches",
    }),
    "ours follows": {
      up: {
        mixed: { ...FOLLOWS.up, theirs: { 2: "late-notification" } },
        ...ofFollows("completed", "completed", "silent"),
      },
      down: {
        mixed: { ...FOLLOWS.down, theirs: { 0: "late-notification" } },
        ...ofFollows("silent", "waiting", "completed"),
        because: "rank 0 never says how it ended: ours is in doubt, and says so",
      },
    },
  },
  "an original rank 0 dies between two writes": {
    "ours leads": never(NO_ORIGINAL_LEADER),
    "ours follows": follows({ theirs: { 0: "dies-between-writes" } }, {
      ...ofFollows("died", "failed", "failed"),
      because: "it takes its store with it, before anybody has voted",
      restart: [],
    }),
  },
  "an original rank 0 dies when its end is half written": {
    "ours leads": never(NO_ORIGINAL_LEADER),
    "ours follows": {
      up: {
        mixed: { ...FOLLOWS.up, theirs: { 0: "dies-half-completed" } },
        ...ofFollows("died", "completed", "failed"),
        because: "ours has read the one record that there is, the original waits for the other",
      },
      down: {
        mixed: { ...FOLLOWS.down, theirs: { 0: "dies-half-completed" } },
        ...ofFollows("died", "completed", "completed"),
      },
    },
  },
  "ours is killed before it is prepared": {
    "ours leads": leads(
      { dies: { at: "effect.engine.call.before" } },
      ofLeads("gone", "failed", "failed"),
    ),
    "ours follows": follows(
      { dies: { at: "effect.engine.call.before" } },
      ofFollows("failed", "gone", "failed"),
    ),
  },
  "ours is killed before it is prepared, and comes back": {
    "ours leads": leads({ dies: { at: "effect.engine.call.before", returns: true } }, {
      ...ofLeads("failed", "failed", "failed"),
      because: "nobody knows whether its engine was asked, and no key says that it is ready",
      text: /after a restart nobody knows whether the engine was prepared/,
      restart: [0],
    }),
    "ours follows": follows({ dies: { at: "effect.engine.call.after", returns: true } }, {
      ...ofFollows("completed", "completed", "completed"),
      because: "its engine says by its key that it is ready",
    }),
  },
  "ours is killed after its vote, and comes back": {
    "ours leads": leads({ dies: { at: "effect.store.decide.after", returns: true } }, {
      ...ofLeads("completed", "completed", "completed"),
    }),
    "ours follows": follows({ dies: { at: "effect.store.decide.before", returns: true } }, {
      ...ofFollows("completed", "completed", "completed"),
    }),
  },
  "ours is silent: its engine does not answer": {
    "ours leads": leads({ engines: { "0 reinitialize_distributed": "silent" } }, {
      ...ofLeads("failed", "failed", "failed"),
      text: /the engine did not answer reinitialize_distributed in time/,
    }),
    "ours follows": follows({ engines: { "1 reinitialize_distributed": "silent" } }, {
      ...ofFollows("failed", "failed", "failed"),
      text: /the engine did not answer reinitialize_distributed in time/,
    }),
  },
  "ours: its engine cannot prepare": {
    "ours leads": leads({ engines: { "0 reinitialize_distributed": "fails" } }, {
      ...ofLeads("failed", "failed", "failed"),
      text: /reinitialize_distributed method failed: on demand/,
    }),
    "ours follows": follows({ engines: { "1 reinitialize_distributed": "fails" } }, {
      ...ofFollows("failed", "failed", "failed"),
      text: /reinitialize_distributed method failed: on demand/,
    }),
  },
  "ours: its engine cannot pause": {
    "ours leads": leads({ engines: { "0 pause_scheduler": "fails" } }, {
      ...ofLeads("failed", "failed", LEAVER),
      text: /pause_scheduler method failed: on demand/,
    }),
    "ours follows": follows({ engines: { "1 pause_scheduler": "fails" } }, {
      ...ofFollows("failed", "failed", LEAVER),
      text: /pause_scheduler method failed: on demand/,
    }),
  },
  "ours: its engine cannot switch": {
    "ours leads": leads({ engines: { "0 commit_prepared_elastic_ep": "fails" } }, {
      ...ofLeads("failed", "failed", LEAVER),
      text: /commit_prepared_elastic_ep method failed: on demand/,
      restart: [0],
    }),
    "ours follows": follows({ engines: { "1 commit_prepared_elastic_ep": "fails" } }, {
      ...ofFollows("failed", "failed", LEAVER),
      text: /commit_prepared_elastic_ep method failed: on demand/,
      restart: [1],
    }),
  },
  "ours: its engine does not resume": {
    "ours leads": leads({ engines: { "0 resume_scheduler": "fails" } }, {
      ...ofLeads("completed", "completed", "completed"),
      because: "it is completed; what is left is an engine that stands still",
      restart: [0],
    }),
    "ours follows": follows({ engines: { "1 resume_scheduler": "fails" } }, {
      ...ofFollows("completed", "completed", "completed"),
      restart: [1],
    }),
  },
  "ours hears late of an earlier operation": {
    "ours leads": leads({ lateWord: true }, ofLeads("completed", "completed", "completed")),
    "ours follows": follows({ lateWord: true }, ofFollows("completed", "completed", "completed")),
  },
  "ours as rank 0 dies between two writes, and comes back": {
    "ours leads": leads({ dies: { at: "effect.store.write.after", returns: true } }, {
      ...ofLeads("completed", "completed", "completed"),
    }),
    "ours follows": never(NO_LEADER_OF_OURS),
  },
  "ours as rank 0 dies between two writes, and takes its store with it": {
    "ours leads": leads(
      { dies: { at: "effect.store.write.after", withStores: true } },
      ofLeads("gone", "failed", "failed"),
    ),
    "ours follows": never(NO_LEADER_OF_OURS),
  },
  "ours is asked to abort before its vote": {
    "ours leads": leads({ abortIn: "awaitingEngines", theirs: { 1: "silent" } }, {
      ...ofLeads("failed", "silent", "failed"),
      text: /the operator thinks otherwise/,
      restart: [0],
    }),
    "ours follows": follows({ abortIn: "awaitingEpoch", theirs: { 0: "silent" } }, {
      ...ofFollows("silent", "failed", "failed"),
      because: "it knows of no epoch yet, so the others end by their own limits",
      text: /the operator thinks otherwise/,
      restart: [],
    }),
  },
  "ours is asked to abort after its vote": {
    "ours leads": {
      up: {
        mixed: {
          ours: [0],
          from: 2,
          to: 3,
          abortIn: "awaitingVotes",
          theirs: { 1: "dies-before-vote" },
        },
        ours: { 0: "waiting" },
        theirs: { 1: "died" },
        because:
          "an original rank may have gone on, so ours does not abort by itself: it is in doubt, and says so",
      },
      down: {
        mixed: {
          ours: [0],
          from: 2,
          to: 1,
          abortIn: "awaitingVotes",
          theirs: { 1: "dies-before-vote" },
        },
        ours: { 0: "waiting" },
        theirs: { 1: "died" },
      },
    },
    "ours follows": follows({ abortIn: "awaitingVotes", theirs: { 2: "dies-before-vote" } }, {
      ...ofFollows("failed", "failed", "died"),
      because: "it waits until rank 0 says by its error that nobody has committed",
    }),
  },
  "a stranger comes to the scale-up port": {
    "ours leads": {
      up: "its server is a real socket, to which real strangers come: stranger.test.ts",
      down: "nobody is greeted when a group shrinks",
    },
    "ours follows": {
      up: {
        mixed: { ...FOLLOWS.up, theirs: { 0: "stranger" }, again: true },
        ...ofFollows("failed", "failed", "failed"),
        because:
          "the original's server ends with the stranger; ours may see the epoch only when it has ended: whose it was nobody says, so it waits for one that is alive, to its time limit",
        again: ofFollows("completed", "completed", "completed"),
      },
      down: "nobody is greeted when a group shrinks",
    },
  },
  "what failed is asked for again": {
    "ours leads": leads({ theirs: { 1: "reinitialize" }, again: true }, {
      ...ofLeads("failed", "failed", "failed"),
      again: ofLeads("completed", "completed", "completed"),
    }),
    "ours follows": follows({ engines: { "1 reinitialize_distributed": "fails" }, again: true }, {
      ...ofFollows("failed", "failed", "failed"),
      again: ofFollows("completed", "completed", "completed"),
    }),
  },
};

// ---- the tests --------------------------------------------------------------------------------------------------

let originals: Originals;
before(async () => {
  if (missing === false) originals = await Originals.start();
}, { timeout: 120_000 });
after(() => originals?.stop());

const cells = SCENARIOS.flatMap((scenario) =>
  (["ours leads", "ours follows"] as const).flatMap((role) =>
    (["up", "down"] as const).map((direction) => ({
      name: `${role}, ${direction}: ${scenario}`,
      cell: TABLE[scenario][role][direction],
    }))
  )
);

test("every cell of role, direction and scenario is tested, or says why there is none", () => {
  assert.equal(cells.length, 108);
  assert.equal(cells.filter(({ cell }) => typeof cell !== "string").length, 97);
});

/** What may be one of two is what it is expected to be. */
const asExpected = (theirs: Ending["theirs"], cell: Cell): Ending["theirs"] =>
  Object.fromEntries(
    Object.entries(theirs).map(([rank, outcome]) => {
      const expected = cell.theirs[Number(rank)];
      return [rank, expected === EITHER && EITHER.includes(outcome) ? EITHER : outcome];
    }),
  );

// Nearly all of a test is waiting, so many run at once.
describe("mixed clusters", { concurrency: 10, skip: missing }, () => {
  for (const { name, cell } of cells) {
    if (typeof cell === "string") continue;
    test(name, { timeout: 120_000 }, async () => {
      const { ours, theirs, texts, restart, again } = await scale(originals, cell.mixed);
      assert.deepEqual(
        { ours, theirs: asExpected(theirs, cell) },
        { ours: cell.ours, theirs: cell.theirs },
        texts.join("; "),
      );
      if (cell.text !== undefined) assert.match(texts[0] ?? "", cell.text);
      if (cell.restart !== undefined) assert.deepEqual(restart, cell.restart);
      if (cell.again !== undefined) {
        assert.deepEqual({ ours: again?.ours, theirs: again?.theirs }, cell.again);
      }
    });
  }
});

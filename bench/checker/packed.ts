/** Two-phase commit searched by code written for this one problem: states packed by hand in two words, no machine in sight. */

const WORKING = 0, PREPARED = 1, COMMITTED = 2, ABORTED = 3;
const INIT = 0;

export interface Count {
  readonly states: number;
  readonly generated: number;
  readonly seconds: number;
}

/** All states of two-phase commit with up to 10 resource managers, breadth-first, with the consistency check. */
export function packedTwoPhaseCommit(managers: number): Count {
  // word a: two bits a manager. word b: two bits of the coordinator, the prepared managers that it noted, the messages.
  const noted = 2, sent = noted + managers, commit = 1 << (sent + managers), abort = commit << 1;
  const all = ((1 << managers) - 1) << noted;
  let capacity = 1 << 16;
  let mask = 2 * capacity - 1;
  let slots = new Int32Array(2 * capacity).fill(-1);
  let as = new Int32Array(capacity);
  let bs = new Int32Array(capacity);
  let count = 0;
  let generated = 0;

  const hash = (a: number, b: number): number => {
    let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b);
    h ^= h >>> 15;
    h = Math.imul(h ^ b, 0xc2b2ae35);
    return h ^ (h >>> 16);
  };
  const grow = (): void => {
    capacity *= 2;
    mask = 2 * capacity - 1;
    slots = new Int32Array(2 * capacity).fill(-1);
    const a2 = new Int32Array(capacity), b2 = new Int32Array(capacity);
    a2.set(as);
    b2.set(bs);
    as = a2;
    bs = b2;
    for (let i = 0; i < count; i++) {
      let slot = hash(as[i]!, bs[i]!) & mask;
      while (slots[slot]! >= 0) slot = (slot + 1) & mask;
      slots[slot] = i;
    }
  };
  const add = (a: number, b: number): void => {
    generated++;
    let slot = hash(a, b) & mask;
    for (;;) {
      const i = slots[slot]!;
      if (i < 0) break;
      if (as[i] === a && bs[i] === b) return;
      slot = (slot + 1) & mask;
    }
    let committed = false, aborted = false;
    for (let r = 0; r < managers; r++) {
      const s = (a >>> (2 * r)) & 3;
      committed ||= s === COMMITTED;
      aborted ||= s === ABORTED;
    }
    if (committed && aborted) throw new Error("inconsistent");
    if (count === capacity) {
      grow();
      slot = hash(a, b) & mask;
      while (slots[slot]! >= 0) slot = (slot + 1) & mask;
    }
    as[count] = a;
    bs[count] = b;
    slots[slot] = count++;
  };

  const began = performance.now();
  add(0, 0);
  generated = 0;
  for (let i = 0; i < count; i++) {
    const a = as[i]!, b = bs[i]!;
    const coordinator = b & 3;
    if (coordinator === INIT) {
      for (let r = 0; r < managers; r++) {
        if ((b >>> (sent + r) & 1) === 1 && (b >>> (noted + r) & 1) === 0) {
          add(a, b | 1 << (noted + r));
        }
      }
      if ((b & all) === all) add(a, b | 1 | commit);
      add(a, b | 2 | abort);
    }
    for (let r = 0; r < managers; r++) {
      const shift = 2 * r;
      const state = a >>> shift & 3;
      const rest = a & ~(3 << shift);
      if (state === WORKING) {
        add(rest | PREPARED << shift, b | 1 << (sent + r));
        add(rest | ABORTED << shift, b);
      }
      if (state === WORKING || state === PREPARED) {
        if ((b & commit) !== 0) add(rest | COMMITTED << shift, b);
        if ((b & abort) !== 0) add(rest | ABORTED << shift, b);
      }
    }
  }
  return { states: count, generated, seconds: (performance.now() - began) / 1000 };
}

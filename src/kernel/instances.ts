/**
 * The instances of a system: immutable to whoever holds one, yet cheap to change.
 *
 * Instances have dense indices in chunks of 256 that are copied when first written in a step (copying a whole map at every
 * step would cost minutes at 60,000 instances). The directory from id to index is shared by all versions and only grows:
 * an id keeps its index for ever, and a version sees the indices below its own size. Two versions that grow apart
 * (a fork) get directories of their own.
 */
import type { Instance, InstanceId } from "./types.ts";

const BITS = 8;
const CHUNK = 1 << BITS;
const MASK = CHUNK - 1;

type Chunk = readonly (Instance | undefined)[];

interface Directory {
  readonly indices: Map<InstanceId, number>;
}

/** An immutable table of instances. */
export class Instances implements Iterable<Instance> {
  static readonly none: Instances = new Instances({ indices: new Map() }, [], 0, 0);

  readonly #directory: Directory;
  readonly #chunks: readonly Chunk[];
  readonly #size: number;
  /** How many instances live. */
  readonly count: number;

  constructor(directory: Directory, chunks: readonly Chunk[], size: number, count: number) {
    this.#directory = directory;
    this.#chunks = chunks;
    this.#size = size;
    this.count = count;
  }

  get(id: InstanceId): Instance | undefined {
    const index = this.#directory.indices.get(id);
    if (index === undefined || index >= this.#size) return undefined;
    return this.#chunks[index >> BITS]![index & MASK];
  }

  /** In the order in which they were first started. */
  *[Symbol.iterator](): Iterator<Instance> {
    for (const chunk of this.#chunks) {
      for (const instance of chunk) if (instance !== undefined) yield instance;
    }
  }

  /** A private, changeable copy. The original stays as it is. */
  edit(): InstancesEdit {
    return new InstancesEdit(this.#directory, this.#chunks, this.#size, this.count);
  }
}

/** A table in the making: changes are seen at once, copied chunks are changed in place. */
export class InstancesEdit {
  #directory: Directory;
  #chunks: Chunk[];
  #chunksShared = true;
  #owned = new Set<number>();
  #size: number;
  #count: number;

  constructor(directory: Directory, chunks: readonly Chunk[], size: number, count: number) {
    this.#directory = directory;
    this.#chunks = chunks as Chunk[];
    this.#size = size;
    this.#count = count;
  }

  get count(): number {
    return this.#count;
  }

  get(id: InstanceId): Instance | undefined {
    const index = this.#directory.indices.get(id);
    if (index === undefined || index >= this.#size) return undefined;
    return this.#chunks[index >> BITS]![index & MASK];
  }

  /** Adds or replaces. */
  set(instance: Instance): void {
    let index = this.#directory.indices.get(instance.id);
    if (index === undefined || index >= this.#size) {
      if (this.#directory.indices.size !== this.#size) this.#fork();
      index = this.#size++;
      this.#directory.indices.set(instance.id, index);
    }
    const chunk = this.#chunk(index >> BITS);
    if (chunk[index & MASK] === undefined) this.#count++;
    chunk[index & MASK] = instance;
  }

  delete(id: InstanceId): void {
    const index = this.#directory.indices.get(id);
    if (index === undefined || index >= this.#size) return;
    const chunk = this.#chunk(index >> BITS);
    if (chunk[index & MASK] !== undefined) this.#count--;
    chunk[index & MASK] = undefined;
  }

  /** The result. Later changes to this edit do not touch it. */
  freeze(): Instances {
    this.#chunksShared = true;
    this.#owned.clear();
    return new Instances(this.#directory, this.#chunks, this.#size, this.#count);
  }

  *[Symbol.iterator](): Iterator<Instance> {
    for (const chunk of this.#chunks) {
      for (const instance of chunk) if (instance !== undefined) yield instance;
    }
  }

  #chunk(number: number): (Instance | undefined)[] {
    if (this.#chunksShared) {
      this.#chunks = this.#chunks.slice();
      this.#chunksShared = false;
    }
    if (!this.#owned.has(number)) {
      this.#chunks[number] = this.#chunks[number]?.slice() ?? new Array(CHUNK).fill(undefined);
      this.#owned.add(number);
    }
    return this.#chunks[number] as (Instance | undefined)[];
  }

  #fork(): void {
    const indices = new Map<InstanceId, number>();
    for (const [id, index] of this.#directory.indices) {
      if (index < this.#size) indices.set(id, index);
    }
    this.#directory = { indices };
  }
}

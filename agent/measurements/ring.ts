import { MEASURED_FIELDS, MEASURED_GPU_FIELDS, unmeasured, type Use } from '../../shared/measurement.js';

/** What an instance has used in ten seconds; `at`: their end, in monotonic milliseconds. */
export interface Point {
  at: number;
  use: Use;
}

/** Keeps the newest points of a workload in one block of memory: 8 bytes for each value. */
export class PointRing {
  private readonly width: number;
  private readonly values: Float64Array;
  private count = 0;

  constructor(
    private readonly gpus: number,
    private readonly capacity: number,
  ) {
    this.width = 1 + MEASURED_FIELDS.length + gpus * MEASURED_GPU_FIELDS.length;
    this.values = new Float64Array(this.width * capacity);
  }

  add({ at, use }: Point): void {
    const gpus = use.gpus.flatMap((gpu) => MEASURED_GPU_FIELDS.map((name) => gpu[name]));
    const row = [at, ...MEASURED_FIELDS.map((name) => use[name]), ...gpus].slice(0, this.width);
    this.values.set(
      row.map((value) => value ?? NaN),
      (this.count % this.capacity) * this.width,
    );
    this.count += 1;
  }

  /** Returns the points that are kept, the oldest first. */
  list(): Point[] {
    const first = Math.max(this.count - this.capacity, 0);
    return Array.from({ length: this.count - first }, (_, index) => this.pointAt((first + index) % this.capacity));
  }

  private pointAt(index: number): Point {
    let next = index * this.width;
    const take = () => {
      const value = this.values[next++] ?? NaN;
      return Number.isNaN(value) ? null : value;
    };
    const at = take() ?? 0;
    const use = unmeasured(this.gpus);
    for (const name of MEASURED_FIELDS) use[name] = take();
    for (const gpu of use.gpus) for (const name of MEASURED_GPU_FIELDS) gpu[name] = take();
    return { at, use };
  }
}

import { MIB } from '../../../../shared/bytes.js';
import { MINUTE_MS } from '../../../../shared/time.js';
import type { PullLimits } from '../../../domain/pull-limits.js';

export interface PullEvent {
  status?: string;
  id?: string;
  error?: string;
  progressDetail?: { current?: number; total?: number };
}

interface Layer {
  current: number;
  total: number;
  isHere: boolean;
}

/** Before this time, the average speed says little. */
const PATIENCE_MS = 2 * MINUTE_MS;
const STILL_TO_COME = /^(Pulling fs layer|Waiting|Downloading|Retrying)/;

/** Adds up Docker's events about a pull, and says when it takes too long: nobody pays for its GPUs meanwhile. */
export class PullWatch {
  private readonly layers = new Map<string, Layer>();

  constructor(
    private readonly limits: PullLimits,
    /** In monotonic milliseconds. */
    private readonly begunAt: number,
  ) {}

  add({ status = '', id, progressDetail }: PullEvent): void {
    if (!id) return;
    const { current = 0, total = 0 } = this.layers.get(id) ?? {};
    const isHere = !STILL_TO_COME.test(status);
    if (status === 'Downloading') {
      const said = { current: progressDetail?.current ?? current, total: progressDetail?.total ?? total };
      this.layers.set(id, { ...said, isHere });
    } else this.layers.set(id, { current: isHere ? total : current, total, isHere });
  }

  /** Downloaded share of all layers whose size is known, in whole percent. */
  get percent(): number {
    const [current, total] = [this.sum(({ current: part }) => part), this.sum(({ total: whole }) => whole)];
    return total === 0 ? 0 : Math.floor((100 * current) / total);
  }

  /** Returns why the pull must be given up at `now`, in monotonic milliseconds; undefined while it can go on. */
  complaint(now: number): string | undefined {
    const { leastBytesPerSecond, longestMs } = this.limits;
    const tookMs = now - this.begunAt;
    if (tookMs > longestMs) return `it took longer than ${Math.round(longestMs / MINUTE_MS)} minutes`;
    const isDownloading = this.layers.size === 0 || [...this.layers.values()].some(({ isHere }) => !isHere);
    if (!isDownloading || tookMs <= PATIENCE_MS) return undefined;
    const perSecond = this.sum(({ current }) => current) / (tookMs / 1000);
    if (perSecond >= leastBytesPerSecond) return undefined;
    return `the registry sends less than ${leastBytesPerSecond / MIB} MiB per second`;
  }

  private sum(pick: (layer: Layer) => number): number {
    return [...this.layers.values()].reduce((all, layer) => all + pick(layer), 0);
  }
}

/**
 * Billing as plainly as it can be said: one second at a time, and the one in which a balance or a limit runs out a millisecond at a time.
 */

const HOUR_MS = 3_600_000n;
const DAY_MS = 86_400_000;
/** GPU time is charged while the workload's process is up, until its renter asks for the end or is told of it. */
const UP_IN = ['creating', 'starting', 'running'];

export interface ReferenceInstance {
  gpuRate: bigint;
  diskRate: bigint;
  gpuMs: bigint;
  diskMs: bigint;
  /** As the control plane has it. */
  status: string;
  /** Whether the workload really runs on its host. */
  isUp: boolean;
  hasDisk: boolean;
  /** What of its GPU time nothing was left for, in the milliseconds in which the balance ran out. */
  absorbed: bigint;
  /** Milliseconds since 1970. */
  stopAt: number | null;
  maxCharge: bigint | null;
  /** Whether a limit has ended its GPU time, until it is stopped. */
  isHalted: boolean;
}

/** What may be spent, in a day and in a month. */
export interface ReferenceCaps {
  day: bigint | null;
  month: bigint | null;
}

function spendOf({ gpuRate, gpuMs, diskRate, diskMs, absorbed }: ReferenceInstance): bigint {
  return (gpuRate * gpuMs) / HOUR_MS + (diskRate * diskMs) / HOUR_MS - absorbed;
}

/** One organization. */
export class Reference {
  readonly instances = new Map<string, ReferenceInstance>();
  /** Credits less debits. */
  private entered = 0n;
  private spent = 0n;
  caps: ReferenceCaps = { day: null, month: null };
  private readonly spentOn = new Map<number, bigint>();

  constructor(
    /** Milliseconds since 1970. */
    private now: number,
  ) {}

  get balance(): bigint {
    return this.entered - this.spent;
  }

  spendOf(id: string): bigint {
    const instance = this.instances.get(id);
    return instance ? spendOf(instance) : 0n;
  }

  enter(amount: number): void {
    this.entered += BigInt(amount);
  }

  advance(seconds: number): void {
    for (let second = 0; second < seconds; second++) this.second();
  }

  /** What was spent on the present day and in the present month. */
  private get spentNow(): { day: bigint; month: bigint } {
    const month = new Date(this.now).toISOString().slice(0, 7);
    const days = [...this.spentOn].filter(([day]) => new Date(day * DAY_MS).toISOString().startsWith(month));
    return { day: this.spentOn.get(this.today) ?? 0n, month: days.reduce((sum, [, micro]) => sum + micro, 0n) };
  }

  private get today(): number {
    return Math.floor(this.now / DAY_MS);
  }

  private second(): void {
    if (!this.pass(1_000)) for (let ms = 0; ms < 1_000; ms++) this.pass(1);
  }

  /** Lets time pass as long as something is left at its end; of GPU time, only what there still is a balance and a limit for counts. */
  private pass(ms: number): boolean {
    // Also of what its renter was never shown as running: its process was up.
    const up = this.metered(({ status, isUp }) => UP_IN.includes(status) && isUp);
    for (const [, instance] of up) this.haltBefore(instance);
    if (up.some(([, { stopAt }]) => stopAt !== null && stopAt > this.now && stopAt < this.now + ms)) return false;
    const gpus = this.balance > 0n ? up.filter(([, { isHalted }]) => !isHalted) : [];
    const disks = this.metered(({ status, hasDisk }) => status === 'stopped' && hasDisk);
    const all = [...gpus, ...disks];
    const spendBefore = sumOf(all);
    const spent = () => sumOf(all) - spendBefore;
    for (const [, instance] of gpus) instance.gpuMs += BigInt(ms);
    for (const [, instance] of disks) instance.diskMs += BigInt(ms);
    for (const { missing, ends, halts } of this.endings(gpus, spent)) {
      const micro = missing();
      if (ends.length === 0 || micro < 0n) continue;
      if (ms > 1) {
        for (const [, instance] of gpus) instance.gpuMs -= BigInt(ms);
        for (const [, instance] of disks) instance.diskMs -= BigInt(ms);
        return false;
      }
      absorb(ends, micro);
      if (halts) for (const [, instance] of ends) instance.isHalted = true;
    }
    const total = spent();
    this.spent += total;
    this.spentOn.set(this.today, (this.spentOn.get(this.today) ?? 0n) + total);
    this.now += ms;
    return true;
  }

  /** What a time or a limit that is used up already ends before it counts. */
  private haltBefore(instance: ReferenceInstance): void {
    const { day, month } = this.spentNow;
    const isOver = instance.stopAt !== null && this.now >= instance.stopAt;
    const isUsedUp =
      (instance.maxCharge !== null && spendOf(instance) >= instance.maxCharge) ||
      (this.caps.day !== null && day >= this.caps.day) ||
      (this.caps.month !== null && month >= this.caps.month);
    if (isOver || (isUsedUp && instance.gpuRate > 0n)) instance.isHalted = true;
  }

  /** What ends GPU time, the narrower first: how much more than was left is spent, whose time it ends, and whether for good. */
  private endings(gpus: readonly WithId[], spent: () => bigint): Ending[] {
    const priced = gpus.filter(([, { gpuRate }]) => gpuRate > 0n);
    const now = this.spentNow;
    const endings: Ending[] = [];
    for (const one of priced) {
      const [, instance] = one;
      const { maxCharge } = instance;
      if (maxCharge !== null) endings.push({ missing: () => spendOf(instance) - maxCharge, ends: [one], halts: true });
    }
    for (const period of ['day', 'month'] as const) {
      const cap = this.caps[period];
      if (cap !== null) endings.push({ missing: () => spent() - (cap - now[period]), ends: priced, halts: true });
    }
    return [...endings, { missing: () => spent() - this.balance, ends: gpus, halts: false }];
  }

  private metered(is: (instance: ReferenceInstance) => boolean): WithId[] {
    return [...this.instances].filter(([, instance]) => is(instance));
  }
}

type WithId = [id: string, instance: ReferenceInstance];

interface Ending {
  missing: () => bigint;
  ends: readonly WithId[];
  halts: boolean;
}

function sumOf(instances: readonly WithId[]): bigint {
  return instances.reduce((sum, [, instance]) => sum + spendOf(instance), 0n);
}

/** Takes back what nothing was left for in a millisecond: of each instance at most what it cost, the highest id first. */
function absorb(gpus: readonly WithId[], missing: bigint): void {
  let left = missing;
  for (const [, instance] of [...gpus].sort(([a], [b]) => (a > b ? -1 : 1))) {
    const { gpuRate, gpuMs } = instance;
    const cost = (gpuRate * gpuMs) / HOUR_MS - (gpuRate * (gpuMs - 1n)) / HOUR_MS;
    const its = cost < left ? cost : left;
    instance.absorbed += its;
    left -= its;
  }
}

import { DAY_MS } from '../../../shared/time.js';
/**
 * Billing as plainly as it can be said: one second at a time, and the one in which a balance or a limit runs out a millisecond at a time.
 */

const HOUR_MS = 3_600_000n;
/** A disk is charged until its host has been silent for so long. */
export const SILENCE_MS = 900_000;
/** When its host tells that a workload is not up yet, no more than the last of its time can be charged later. */
const UNTOLD_MS = 600_000n;
/** GPU time is charged while the workload's process is up, until its renter asks for the end or is told of it. */
const UNSHOWN_IN = ['creating', 'starting'];
const UP_IN = [...UNSHOWN_IN, 'running'];

export interface ReferenceInstance {
  /** The API key that has deployed it; null: none has. Its disk counts for the key. */
  key: string | null;
  /** The API key that has caused its last run, by a deploy or a start; null: none has. Its GPU time counts for the key. */
  runKey: string | null;
  gpuRate: bigint;
  diskRate: bigint;
  gpuMs: bigint;
  /** How much of that is of the present run, while its renter is not shown that it is up. */
  unshownMs: bigint;
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

/** An API key, whose caps count the disks of what it has deployed and the runs that it has caused; null: the organization. */
type Owner = string | null;

/** What was spent so far on the present day and in the present month. */
interface Spent {
  day: bigint;
  month: bigint;
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
  /** Those of an API key come before those of the organization: the narrower is used up first. */
  private caps: { owner: Owner; caps: ReferenceCaps }[] = [];
  private readonly spentNow = new Map<Owner, Spent>();
  private present: { day: number; month: number };
  /** Whether a control plane runs that could hear the host. */
  private isListening = true;
  /** For how long the host is silent although the control plane could hear it. */
  silentMs = 0;

  constructor(
    /** Milliseconds since 1970. */
    private now: number,
  ) {
    this.present = periodsOf(now);
  }

  get balance(): bigint {
    return this.entered - this.spent;
  }

  spendOf(id: string): bigint {
    const instance = this.instances.get(id);
    return instance ? spendOf(instance) : 0n;
  }

  cap(owner: Owner, caps: ReferenceCaps): void {
    const others = this.caps.filter((one) => one.owner !== owner);
    this.caps = owner === null ? [...others, { owner, caps }] : [{ owner, caps }, ...others];
  }

  /** The host says something. */
  hear(): void {
    this.silentMs = 0;
  }

  /** A deploy or a start has caused a run, by an API key or by nobody's. */
  beginRun(id: string, runKey: string | null): void {
    const instance = this.instances.get(id);
    if (instance) instance.runKey = runKey;
  }

  /** The host tells of progress of a provision or start that is under way. */
  tellOfProgress(id: string): void {
    const instance = this.instances.get(id);
    if (!instance || instance.unshownMs <= UNTOLD_MS) return;
    const before = spendOf(instance);
    instance.gpuMs -= instance.unshownMs - UNTOLD_MS;
    instance.unshownMs = UNTOLD_MS;
    const lost = before - spendOf(instance);
    this.spent -= lost;
    for (const owner of new Set([null, instance.runKey])) {
      const spent = this.spentBy(owner);
      spent.day -= lost;
      spent.month -= lost;
    }
  }

  enter(amount: number): void {
    this.entered += BigInt(amount);
  }

  /** Time passes; `isListening` says whether a control plane runs in it. */
  advance(seconds: number, isListening = true): void {
    this.isListening = isListening;
    for (let second = 0; second < seconds; second++) this.second();
  }

  private spentBy(owner: Owner): Spent {
    const spent = this.spentNow.get(owner) ?? { day: 0n, month: 0n };
    this.spentNow.set(owner, spent);
    return spent;
  }

  /** Begins to count anew where a day or month begins. */
  private turnDay(): void {
    const { day, month } = periodsOf(this.now);
    for (const spent of this.spentNow.values()) {
      if (day !== this.present.day) spent.day = 0n;
      if (month !== this.present.month) spent.month = 0n;
    }
    this.present = { day, month };
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
    const disks = this.metered(({ status, hasDisk }) => status === 'stopped' && hasDisk && this.silentMs < SILENCE_MS);
    const owners = new Set([null, ...gpus.map(([, { runKey }]) => runKey), ...disks.map(([, { key }]) => key)]);
    const meters = [...owners].map((owner) => meterOf(owner, gpus, disks));
    for (const [, instance] of gpus) instance.gpuMs += BigInt(ms);
    for (const [, instance] of disks) instance.diskMs += BigInt(ms);
    const before = new Map(gpus.map(([id, { absorbed }]) => [id, absorbed]));
    for (const { missing, ends, halts } of this.endings(gpus, meters)) {
      const micro = missing();
      if (ends.length === 0 || micro < 0n) continue;
      if (ms > 1) {
        for (const [, instance] of gpus) instance.gpuMs -= BigInt(ms);
        for (const [, instance] of disks) instance.diskMs -= BigInt(ms);
        return false;
      }
      absorb(ends, micro, before);
      if (halts) for (const [, instance] of ends) instance.isHalted = true;
    }
    for (const [, instance] of this.instances)
      instance.unshownMs = UNSHOWN_IN.includes(instance.status) ? instance.unshownMs : 0n;
    for (const [, instance] of gpus) if (UNSHOWN_IN.includes(instance.status)) instance.unshownMs += BigInt(ms);
    for (const { owner, spent } of meters) {
      const its = this.spentBy(owner);
      const micro = spent();
      its.day += micro;
      its.month += micro;
      if (owner === null) this.spent += micro;
    }
    if (this.isListening) this.silentMs += ms;
    this.now += ms;
    if (this.now % DAY_MS === 0) this.turnDay();
    return true;
  }

  /** What a time or a limit that is used up already ends before it counts. */
  private haltBefore(instance: ReferenceInstance): void {
    const isOver = instance.stopAt !== null && this.now >= instance.stopAt;
    const isUsedUp =
      (instance.maxCharge !== null && spendOf(instance) >= instance.maxCharge) ||
      this.caps.some(({ owner, caps }) => isRunOf(owner, instance) && this.isCapUsedUp(owner, caps));
    if (isOver || (isUsedUp && instance.gpuRate > 0n)) instance.isHalted = true;
  }

  private isCapUsedUp(owner: Owner, { day, month }: ReferenceCaps): boolean {
    const spent = this.spentBy(owner);
    return (day !== null && spent.day >= day) || (month !== null && spent.month >= month);
  }

  /** What ends GPU time, the narrower first: how much more than was left is spent, whose time it ends, and whether for good. */
  private endings(gpus: readonly WithId[], meters: readonly SpendMeter[]): Ending[] {
    const priced = gpus.filter(([, { gpuRate }]) => gpuRate > 0n);
    const endings: Ending[] = [];
    for (const one of priced) {
      const [, instance] = one;
      const { maxCharge } = instance;
      if (maxCharge !== null) endings.push({ missing: () => spendOf(instance) - maxCharge, ends: [one], halts: true });
    }
    const spentOf = (owner: Owner) => meters.find((meter) => meter.owner === owner)?.spent() ?? 0n;
    for (const { owner, caps } of this.caps) {
      const ends = priced.filter(([, instance]) => isRunOf(owner, instance));
      const before = this.spentBy(owner);
      for (const period of ['day', 'month'] as const) {
        const cap = caps[period];
        if (cap !== null) endings.push({ missing: () => spentOf(owner) - (cap - before[period]), ends, halts: true });
      }
    }
    return [...endings, { missing: () => spentOf(null) - this.balance, ends: gpus, halts: false }];
  }

  private metered(is: (instance: ReferenceInstance) => boolean): WithId[] {
    return [...this.instances].filter(([, instance]) => is(instance));
  }
}

type WithId = [id: string, instance: ReferenceInstance];

/** What instances of an owner have spent since the meter was made. */
interface SpendMeter {
  owner: Owner;
  spent: () => bigint;
}

function meterOf(owner: Owner, gpus: readonly WithId[], disks: readonly WithId[]): SpendMeter {
  const its = [
    ...gpus.filter(([, instance]) => isRunOf(owner, instance)),
    ...disks.filter(([, { key }]) => owner === null || owner === key),
  ];
  const before = sumOf(its);
  return { owner, spent: () => sumOf(its) - before };
}

function isRunOf(owner: Owner, { runKey }: ReferenceInstance): boolean {
  return owner === null || owner === runKey;
}

/** The day and the month of a time, each as a number that no other one has. */
function periodsOf(at: number): { day: number; month: number } {
  const date = new Date(at);
  return { day: Math.floor(at / DAY_MS), month: 12 * date.getUTCFullYear() + date.getUTCMonth() };
}

interface Ending {
  missing: () => bigint;
  ends: readonly WithId[];
  halts: boolean;
}

function sumOf(instances: readonly WithId[]): bigint {
  return instances.reduce((sum, [, instance]) => sum + spendOf(instance), 0n);
}

/**
 * Takes back what nothing was left for in a millisecond: of each instance at most what it cost, the highest id first. `before` has what
 * was absorbed of each before that millisecond: two limits that end in it take nothing back twice.
 */
function absorb(gpus: readonly WithId[], missing: bigint, before: ReadonlyMap<string, bigint>): void {
  let left = missing;
  for (const [id, instance] of [...gpus].sort(([a], [b]) => (a > b ? -1 : 1))) {
    const { gpuRate, gpuMs } = instance;
    const cost = (gpuRate * gpuMs) / HOUR_MS - (gpuRate * (gpuMs - 1n)) / HOUR_MS;
    const charged = cost - (instance.absorbed - (before.get(id) ?? 0n));
    const its = charged < left ? charged : left;
    instance.absorbed += its;
    left -= its;
  }
}

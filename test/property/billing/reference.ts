/** Billing as plainly as it can be said: one second at a time, and the one in which a balance runs out a millisecond at a time. */

const HOUR_MS = 3_600_000n;
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

  private second(): void {
    if (!this.pass(1_000n)) for (let ms = 0; ms < 1_000; ms++) this.pass(1n);
  }

  /** Lets time pass as long as something is left at its end; of GPU time, only what there still is a balance for counts. */
  private pass(ms: bigint): boolean {
    const hasBalance = this.balance > 0n;
    // Also of what its renter was never shown as running: its process was up.
    const gpus = hasBalance ? this.metered(({ status, isUp }) => UP_IN.includes(status) && isUp) : [];
    const disks = this.metered(({ status, hasDisk }) => status === 'stopped' && hasDisk);
    const spent = () => [...gpus, ...disks].reduce((sum, [, instance]) => sum + spendOf(instance), 0n);
    if (gpus.length + disks.length === 0) return true;
    const before = spent();
    for (const [, instance] of gpus) instance.gpuMs += ms;
    for (const [, instance] of disks) instance.diskMs += ms;
    const missing = spent() - before - this.balance;
    const runsOut = gpus.length > 0 && missing >= 0n;
    if (runsOut && ms > 1n) {
      for (const [, instance] of gpus) instance.gpuMs -= ms;
      for (const [, instance] of disks) instance.diskMs -= ms;
      return false;
    }
    if (runsOut) absorb(gpus, missing);
    this.spent += spent() - before;
    return true;
  }

  private metered(is: (instance: ReferenceInstance) => boolean): WithId[] {
    return [...this.instances].filter(([, instance]) => is(instance));
  }
}

type WithId = [id: string, instance: ReferenceInstance];

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

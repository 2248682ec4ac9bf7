import type { Clock, Timer } from '../../shared/clock.js';
import { LONGEST_OF_FINDING, MOST_FINDINGS } from '../../shared/finding.js';
import { Verdict, type Finding as FindingMessage } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { plainLine } from '../../shared/plain-text.js';
import { MINUTE_MS } from '../../shared/time.js';
import type { Send } from '../link/outbox.js';
import { examine } from './doctor.js';
import type { Check } from './finding.js';

/** The control plane first hears what runs here. */
const FIRST_MS = 2_000;
const EVERY_MS = 10 * MINUTE_MS;
const LEAST_APART_MS = MINUTE_MS;
const VERDICTS = {
  bad: Verdict.VERDICT_FAILURE,
  doubtful: Verdict.VERDICT_WARNING,
  good: Verdict.VERDICT_OK,
} as const;

/**
 * Runs the doctor's checks while the agent is connected, and reports what they find: soon after the start, soon after a change of the
 * host's health, and every ten minutes. Nothing waits for the checks, and two rounds never run at once.
 */
export class FindingReports {
  private send: Send | undefined;
  private timer: Timer | undefined;
  private isLooking = false;
  private lookedAt = -Infinity;
  private sentAt = -Infinity;
  private health: string | undefined;

  constructor(
    /** None: this host reports no findings. */
    private readonly checks: readonly Check[],
    private readonly clock: Clock,
  ) {}

  /** Whether this host reports findings. */
  get areMade(): boolean {
    return this.checks.length > 0;
  }

  /** `takes`: whether the control plane takes findings. */
  connected(takes: boolean, send: Send): void {
    if (!takes || !this.areMade) return;
    this.send = send;
    this.plan(this.sentAt + EVERY_MS);
  }

  /** Also stops what is planned. */
  disconnected(): void {
    this.send = undefined;
    this.timer?.cancel();
    this.timer = undefined;
  }

  /** Takes a description of the host's health. If it differs from the one before, the checks run again soon. */
  noteHealth(health: string): void {
    const isChange = this.health !== undefined && this.health !== health;
    this.health = health;
    if (!isChange) return;
    this.sentAt = -Infinity;
    if (this.send) this.plan(this.lookedAt + LEAST_APART_MS);
  }

  /** Plans the next round. `at`: in monotonic milliseconds. */
  private plan(at: number): void {
    this.timer?.cancel();
    this.timer = this.clock.schedule(Math.max(at - this.clock.monotonic(), FIRST_MS), () => {
      this.timer = undefined;
      void this.look();
    });
  }

  private async look(): Promise<void> {
    if (this.isLooking) return this.plan(this.clock.monotonic() + LEAST_APART_MS);
    this.isLooking = true;
    this.lookedAt = this.clock.monotonic();
    const findings = messagesOf(await examine(this.checks, this.clock));
    this.isLooking = false;
    if (!this.send) return;
    const isSent = this.send({ message: { $case: 'findingReport', value: { findings } } }, 'may wait');
    const now = this.clock.monotonic();
    if (isSent) this.sentAt = now;
    // A change during the round has planned the next one.
    if (!this.timer) this.plan(now + (isSent ? EVERY_MS : LEAST_APART_MS));
  }
}

/** Returns the findings as the control plane takes them, the worst first. */
function messagesOf(results: Awaited<ReturnType<typeof examine>>): FindingMessage[] {
  const { check, what: longestWhat, advice: longestAdvice } = LONGEST_OF_FINDING;
  return results
    .flatMap(({ name, findings }) =>
      findings.map(({ verdict, what, advice = '' }) => ({
        check: plainLine(name, check),
        verdict: VERDICTS[verdict],
        what: plainLine(what, longestWhat),
        advice: plainLine(advice, longestAdvice),
      })),
    )
    .sort((one, other) => other.verdict - one.verdict)
    .slice(0, MOST_FINDINGS);
}

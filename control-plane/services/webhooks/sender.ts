import type { Logger } from '../../../shared/logger.js';
import { messageOf } from '../../../shared/coded-error.js';
import { ATTEMPT_MS, WebhookFailure, askedWaitMs, type PostWebhook, type WebhookAnswer } from '../../domain/webhook.js';
import type { Platform } from '../system/platform.js';
import { claimDue } from './claim.js';
import { makeDeliveries } from './fan-out.js';
import { Flights, type Owner } from './flights.js';
import { signedMessage, type Claim } from './message.js';
import { recordOutcome, releaseClaim, type Outcome } from './outcome.js';
import type { HasChangedStreams } from './streams.js';

/** Most characters of an answer that the log keeps. */
const KEPT_OF_ANSWER = 1_024;

interface Flight extends Owner {
  controller: AbortController;
  done: Promise<void>;
}

/**
 * Delivers events to webhook endpoints, at least once and in no order. A claim is committed before its attempt begins, and the result
 * after it has ended, so a crash in between repeats the attempt. Attempts run outside of transactions, at most 50 at once.
 */
export class WebhookSender {
  private readonly flights = new Map<string, Flight>();
  private isStopped = false;

  constructor(
    private readonly platform: Platform & HasChangedStreams,
    private readonly post: PostWebhook,
    private readonly logger: Logger,
  ) {}

  /** Turns new events into deliveries, and begins those that are due: a bounded number of both. */
  run(): { made: number; begun: number } {
    if (this.isStopped) return { made: 0, begun: 0 };
    const { made, claims } = this.prepare();
    for (const claim of claims) this.begin(claim);
    return { made, begun: claims.length };
  }

  private prepare(): { made: number; claims: Claim[] } {
    try {
      return this.platform.store.transact((tx) => ({
        made: makeDeliveries(tx, this.platform.changedStreams),
        claims: claimDue(tx, new Flights(this.flights.values())),
      }));
    } catch (error) {
      this.platform.changedStreams.noteAll();
      throw error;
    }
  }

  /** Breaks off what is under way, which stays pending, and resolves once that is recorded. */
  async stop(): Promise<void> {
    this.isStopped = true;
    const flights = [...this.flights.values()];
    for (const { controller } of flights) controller.abort(new Stopped());
    await Promise.all(flights.map(({ done }) => done));
  }

  private begin(claim: Claim): void {
    const { endpoint, delivery, holder } = claim;
    const controller = new AbortController();
    const timer = this.platform.clock.schedule(ATTEMPT_MS, () => controller.abort(new WebhookFailure('timed_out')));
    const done = this.attempt(claim, controller.signal)
      .catch((error: unknown) => this.logFault(claim, error))
      .finally(() => {
        timer.cancel();
        if (this.flights.get(delivery.id)?.controller === controller) this.flights.delete(delivery.id);
      });
    const organizationId = endpoint.organization_id;
    const owner = { endpointId: endpoint.id, organizationId, holder, deliveryId: delivery.id };
    this.flights.set(delivery.id, { ...owner, controller, done });
  }

  private async attempt(claim: Claim, signal: AbortSignal): Promise<void> {
    const { endpoint, delivery } = claim;
    const outcome = await this.outcomeOf(claim, signal);
    const { store, clockSteps } = this.platform;
    // Before the record is made, so that the worker that it wakes finds room.
    this.flights.delete(delivery.id);
    if (outcome === undefined) return store.transact((tx) => releaseClaim(tx, delivery));
    const isClockTrusted = clockSteps.isTrusted();
    store.join(() =>
      store.transact((tx) => {
        recordOutcome(tx, delivery, outcome, isClockTrusted);
        // It may have had so many pending deliveries that further events had to wait.
        this.platform.changedStreams.note(endpoint.organization_id);
        tx.nudge('webhooks');
      }),
    );
    const { error, status } = outcome;
    const about = { organizationId: endpoint.organization_id, endpointId: endpoint.id, deliveryId: delivery.id };
    this.logger.debug({ ...about, error, status, attempt: delivery.attempts }, 'webhook attempted');
  }

  /** Makes the attempt. Returns undefined if this control plane has broken it off. */
  private async outcomeOf(claim: Claim, signal: AbortSignal): Promise<Outcome | undefined> {
    try {
      const { url } = claim.endpoint;
      const answer = await this.post({ url, ...signedMessage(this.platform, claim), signal });
      return { ...judge(answer), askedMs: askedWaitMs(answer, this.platform.clock.now()) };
    } catch (error) {
      if (error instanceof Stopped) return undefined;
      if (error instanceof WebhookFailure) return { ...NO_ANSWER, error: error.code };
      this.logFault(claim, error);
      return { ...NO_ANSWER, error: 'internal' };
    }
  }

  /** Whatever has failed, the delivery is tried again: later, or as soon as its claim is over. */
  private logFault({ endpoint, delivery }: Claim, error: unknown): void {
    const about = { endpointId: endpoint.id, deliveryId: delivery.id };
    this.logger.error({ ...about, err: error }, `a webhook attempt has failed here: ${messageOf(error)}`);
  }
}

/** The control plane stops. */
class Stopped extends Error {}

const NO_ANSWER = { status: null, answer: null, askedMs: 0 };

function judge({ status, text }: WebhookAnswer): Omit<Outcome, 'askedMs'> {
  const answer = printable(text).slice(0, KEPT_OF_ANSWER);
  if (status >= 200 && status < 300) return { error: null, status, answer };
  return { error: status >= 300 && status < 400 ? 'redirected' : 'status', status, answer };
}

/** Replaces control characters, except line breaks and tabs. */
function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '\ufffd');
}

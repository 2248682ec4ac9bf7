import type { Clock } from '../../../shared/clock.js';
import type { AuditOutputName } from '../../domain/audit-line.js';
import { ATTEMPT_MS, WebhookFailure, askedWaitMs, type PostWebhook } from '../../domain/webhook.js';
import { auditMessage } from './message.js';

/** Takes a batch of lines. Rejects with {@link NotTaken}, or with the reason of the signal once that is aborted. */
export interface AuditOutput {
  name: AuditOutputName;
  send(lines: readonly string[], signal: AbortSignal): Promise<void>;
}

/** Writes text, whose every line ends with a line break. Resolves once all of it is written. */
export type WriteText = (lines: readonly string[], signal: AbortSignal) => Promise<void>;

/** An output has not taken a batch, or perhaps has: it is sent again. */
export class NotTaken extends Error {
  /** `askedMs`: for how many milliseconds the receiver asks not to be sent anything. */
  constructor(
    readonly why: { error: string; status?: number },
    readonly askedMs = 0,
    options?: ErrorOptions,
  ) {
    super(`${why.error}${why.status === undefined ? '' : ` ${why.status}`}`, options);
  }
}

export function stdoutOutput(write: WriteText): AuditOutput {
  return { name: 'stdout', send: (lines, signal) => write(lines, signal) };
}

/** Where audit lines are posted, and the secret that signs them: `whsec_` and base64. */
export interface AuditWebhook {
  url: string;
  secret: string;
}

/** Returns the output that posts lines. An answer other than 2xx, a redirect too, is a failure. */
export function webhookOutput({ url, secret }: AuditWebhook, post: PostWebhook, clock: Clock): AuditOutput {
  const attempt = async (lines: readonly string[], signal: AbortSignal) => {
    const answer = await post({ url, ...auditMessage(lines, secret, clock.now()), signal });
    const { status } = answer;
    if (status >= 200 && status < 300) return;
    const error = status >= 300 && status < 400 ? 'redirected' : 'status';
    throw new NotTaken({ error, status }, askedWaitMs(answer, clock.now()));
  };
  return {
    name: 'webhook',
    async send(lines, signal) {
      const controller = new AbortController();
      const timer = clock.schedule(ATTEMPT_MS, () => controller.abort(new WebhookFailure('timed_out')));
      try {
        await attempt(lines, AbortSignal.any([signal, controller.signal]));
      } catch (error) {
        if (!(error instanceof WebhookFailure)) throw error;
        throw new NotTaken({ error: error.code }, 0, { cause: error });
      } finally {
        timer.cancel();
      }
    },
  };
}

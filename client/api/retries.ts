import { isOfApi, UnreachableError } from './errors.js';

/** Waits. Rejects if the signal is aborted meanwhile. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** What a proxy answers, which does not know whether the control plane has done what was asked. */
const LOST = [502, 504];
/** What the control plane answers when it has done nothing. A proxy answers so, too, also when it does not know. */
const REFUSED_FOR_NOW = [429, 503];

/**
 * Returns a fetch that sends a request again, at most `attempts` times in all, where that is safe: what only reads or carries an
 * Idempotency-Key after any failure on the way, everything else only if the control plane has refused it for now. It waits as long as
 * `Retry-After` says, but at most 30 seconds; otherwise 0.5 s, 1 s, 2 s and so on, and up to half of that more.
 */
export function retrying(
  fetch: (request: Request) => Promise<Response>,
  attempts: number,
  wait: Wait,
): (request: Request) => Promise<Response> {
  return async (request) => {
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt >= attempts;
      const outcome = await tried(fetch, isLast ? request : request.clone());
      if (isLast || !(await mayRepeat(request, outcome))) {
        if (outcome instanceof Response) return outcome;
        throw outcome;
      }
      if (outcome instanceof Response) await outcome.body?.cancel();
      await wait(waitFor(outcome, attempt), request.signal);
    }
  };
}

async function tried(
  fetch: (request: Request) => Promise<Response>,
  request: Request,
): Promise<Response | UnreachableError> {
  try {
    return await fetch(request);
  } catch (error) {
    request.signal.throwIfAborted();
    return new UnreachableError(new URL(request.url).origin, error);
  }
}

async function mayRepeat({ method, headers }: Request, outcome: Response | UnreachableError): Promise<boolean> {
  const isSafe = method === 'GET' || method === 'HEAD' || headers.has('idempotency-key');
  if (!(outcome instanceof Response)) return isSafe;
  if (isSafe) return [...LOST, ...REFUSED_FOR_NOW].includes(outcome.status);
  return REFUSED_FOR_NOW.includes(outcome.status) && isOfApi(await outcome.clone().text());
}

function waitFor(outcome: Response | UnreachableError, attempt: number): number {
  const said = outcome instanceof Response ? Number(outcome.headers.get('retry-after') ?? NaN) * 1_000 : NaN;
  const own = FIRST_WAIT_MS * 2 ** (attempt - 1) * (1 + Math.random() / 2);
  return Math.min(Number.isFinite(said) && said >= 0 ? said : own, LONGEST_WAIT_MS);
}

/** Waits in real time. */
export const realWait: Wait = (ms, signal) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal.addEventListener('abort', abort, { once: true });
  });

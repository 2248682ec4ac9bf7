/**
 * What a page reads waits until the last event before it is known: so each change after that is told by an event, and nothing is read
 * twice. Who the reader is, and the events, are asked for first.
 */
const FIRST = ['/v1/me', '/v1/events'];
/** For so long others wait at most. */
const LONGEST_MS = 5_000;

let allow: () => void = () => undefined;
let isAllowed = false;
const allowed = new Promise<void>((resolve) => (allow = resolve));

/** Lets every request go. Returns false if that was so before. */
export function allowReads(): boolean {
  if (isAllowed) return false;
  isAllowed = true;
  allow();
  return true;
}

/** Sends a request in its turn. Where what is asked first fails, nothing waits for it. */
export async function inTurn(request: Request, send: (request: Request) => Promise<Response>): Promise<Response> {
  const isFirst = FIRST.includes(new URL(request.url).pathname);
  if (!isFirst) {
    const timer = setTimeout(allowReads, LONGEST_MS);
    await allowed;
    clearTimeout(timer);
    return send(request);
  }
  try {
    const response = await send(request);
    if (!response.ok) allowReads();
    return response;
  } catch (error) {
    allowReads();
    throw error;
  }
}

import type { Page, Request } from 'playwright-core';

/** Requests that reach the control plane, and whose answers do not reach the page. */
export interface LostAnswers {
  /** The Idempotency-Keys of what was sent, also after the end. */
  keys: (string | undefined)[];
  /** Lets answers through again. */
  end: () => void;
}

/** Loses the answer of every POST to a path of the API. */
export async function loseAnswers(page: Page, path: string): Promise<LostAnswers> {
  const keys: (string | undefined)[] = [];
  let isOver = false;
  const isMeant = (request: Request) => request.method() === 'POST' && new URL(request.url()).pathname === path;
  await page.route(`**${path}`, async (route) => {
    if (!isMeant(route.request())) return route.fallback();
    keys.push(route.request().headers()['idempotency-key']);
    if (isOver) return route.fallback();
    await route.fetch();
    await route.abort('connectionreset');
  });
  return { keys, end: () => void (isOver = true) };
}

import { expect, vi } from 'vitest';
import type { ApiClient } from './api-client.js';
import type { Store, Tx } from '../../control-plane/store/store.js';
import type { TestControlPlane } from './control-plane.js';

/** More statements than any request has. */
const MOST = 200;

export interface TestedRequest {
  api: ApiClient;
  method: string;
  path: string;
  body?: unknown;
}

/**
 * Sends a request until all of its statements are through; each time one more of them works, and the next one fails. Expects that nothing
 * has happened then, and that a repeat after the success is done again or refused without a trace. `undo` takes back what may stay of a
 * request that has failed; `onDone` is called after the success.
 */
export async function failEachStatement(
  test: TestControlPlane,
  { api, method, path, body }: TestedRequest,
  { undo = () => {}, onDone = () => {} }: { undo?: (() => void) | undefined; onDone?: () => void } = {},
): Promise<void> {
  for (let nth = 1; ; nth++) {
    const before = test.dump();
    const end = failAt(test, nth);
    const answer = await api.request<{ code?: string }>(method, path, body);
    const statements = end();
    // All of its statements are through; what fails then is a worker's that it has woken.
    if (answer.status < 300) {
      expect(nth).toBeGreaterThan(1);
      break;
    }
    expect(statements).toBe(nth);
    expect(answer).toMatchObject({ status: 500, body: { code: 'INTERNAL' } });
    undo();
    expect(test.dump()).toEqual(before);
    expect(nth).toBeLessThan(MOST);
  }
  onDone();
  // A repeat, as by a client that has not heard the answer.
  const before = test.dump();
  const again = await api.request(method, path, body);
  expect(again.status).toBeLessThan(500);
  if (again.status >= 400) expect(test.dump()).toEqual(before);
}

/** The nth statement of what follows fails. Returns how to end that, which returns how many statements there were. */
function failAt(test: TestControlPlane, nth: number): () => number {
  let statements = 0;
  const end = beforeStatements(test.core.platform.store, () => {
    statements += 1;
    if (statements === nth) throw new Error('the disk is on fire');
  });
  const compare = vi.spyOn(test, 'checkMemory').mockReturnValue();
  return () => {
    end();
    compare.mockRestore();
    test.checkMemory();
    return statements;
  };
}

type Statement = Parameters<Tx['run']>[0];

/** Calls `look` before each statement of use cases. Returns how to end that. */
export function beforeStatements(store: Store, look: (statement: Statement) => void): () => void {
  const transact = store.transact.bind(store);
  const watched = (tx: Tx): Tx => {
    const looking =
      <Result>(run: (statement: Statement) => Result) =>
      (statement: Statement): Result => {
        look(statement);
        return run(statement);
      };
    return { ...tx, all: looking(tx.all) as Tx['all'], get: looking(tx.get) as Tx['get'], run: looking(tx.run) };
  };
  store.transact = (work) => transact((tx) => work(watched(tx)));
  return () => {
    store.transact = transact;
  };
}

import { afterEach, describe, expect, it, vi } from 'vitest';
import { simulate } from './run.js';

afterEach(() => {
  vi.doUnmock('../../control-plane/services/instances/claims.js');
  vi.doUnmock('../../control-plane/services/instances/transitions.js');
  vi.doUnmock('../../control-plane/services/dispatch.js');
  vi.doUnmock('../../agent/commands/perform.js');
  vi.doUnmock('../../agent/watch/watcher.js');
  vi.resetModules();
});

it('a seed repeats itself bit for bit, and another does not', async () => {
  const [once, again, other] = [await simulate(7, 150), await simulate(7, 150), await simulate(8, 150)];
  expect(once.failure).toBeUndefined();
  expect(again.digest).toBe(once.digest);
  expect(again.counts).toEqual(once.counts);
  expect(other.digest).not.toBe(once.digest);
});

/** Runs seeds against the modules as they are mocked now, until something is caught. */
async function caught(): Promise<string | undefined> {
  const broken = await import('./run.js');
  for (let seed = 1; seed <= 40; seed++) {
    const { failure } = await broken.simulate(seed, 200);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

type Module = Record<string, unknown>;

describe('a bug that is put in is caught:', () => {
  it.each<[string, string, (module: Module) => Module, string]>([
    [
      'GPUs are not claimed',
      '../../control-plane/services/instances/claims.js',
      () => ({ claimGpus: () => {} }),
      'what may run holds its GPUs',
    ],
    [
      'claims are never dropped',
      '../../control-plane/services/instances/claims.js',
      () => ({ dropClaims: () => {} }),
      'holds',
    ],
    [
      'commands are never sent',
      '../../control-plane/services/dispatch.js',
      () => ({ dispatchCommands: () => ({}) }),
      'is',
    ],
    [
      'a status forgets when it first ran',
      '../../control-plane/services/instances/transitions.js',
      (module) => ({
        transition: (tx: never, instance: { started_at: number | null }, to: string, changes: object) => {
          const forgotten = to === 'running' ? { ...instance, started_at: null } : instance;
          return (module['transition'] as (...args: unknown[]) => unknown)(tx, forgotten, to, changes);
        },
      }),
      'what has started was started once',
    ],
    [
      'a stop removes the disk',
      '../../agent/commands/perform.js',
      (module) => ({
        perform: async (
          hands: { runtime: { remove(id: string): Promise<void> } },
          attempt: { command: { instanceId: string; desired?: { $case: string } } },
        ) => {
          const { instanceId, desired } = attempt.command;
          if (desired?.$case === 'stopped') await hands.runtime.remove(instanceId);
          return (module['perform'] as (...args: unknown[]) => unknown)(hands, attempt);
        },
      }),
      'no disk is removed',
    ],
  ])('%s', { timeout: 60_000 }, async (_bug, path, change, expected) => {
    vi.resetModules();
    vi.doMock(path, async (importOriginal) => {
      const module = await importOriginal<Module>();
      return { ...module, ...change(module) };
    });
    const failure = await caught();
    expect(failure).toContain(expected);
  });
});

import type { Socket } from 'node:net';
import { sleep, type Clock } from '../../shared/clock.js';
import { InstanceProxy } from './instance-proxy.js';
import type { WorkerOrder, WorkerWord } from './state.js';

/** Checks within the time after which a worker is idle. */
const LOOKS = 10;
/** The user and group `nobody`. */
const NOBODY = 65_534;

/**
 * Serves the guarded ports of one instance, in its own process, until the supervisor ends it. Tells the supervisor once
 * it has had no connection for `idleMs`.
 */
export function runWorker(clock: Clock, idleMs: number): void {
  giveUpRoot();
  const proxy = new InstanceProxy(clock);
  let taken = 0;
  process.on('message', (order: WorkerOrder, socket?: Socket) => {
    if (order.kind === 'configure') return proxy.configure(order.ports, order.identity);
    taken++;
    // There is no socket if the visitor has left meanwhile.
    if (socket) proxy.take(order.hostPort, socket);
    tell({ kind: 'taken' });
  });
  // Without its supervisor, the worker gets no more work.
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  void reportIdle(clock, idleMs, () => (proxy.connections > 0 ? undefined : taken));
}

/** Tells the supervisor when the worker is idle. `taken`: number of connections so far; undefined while one is open. */
async function reportIdle(clock: Clock, idleMs: number, taken: () => number | undefined): Promise<never> {
  let idle: { taken: number | undefined; since: number } = { taken: undefined, since: 0 };
  for (;;) {
    await sleep(clock, idleMs / LOOKS);
    const now = clock.monotonic();
    if (idle.taken !== taken()) idle = { taken: taken(), since: now };
    else if (idle.taken !== undefined && now - idle.since >= idleMs) tell({ kind: 'idle' });
  }
}

function tell(word: WorkerWord): void {
  process.send?.(word);
}

/**
 * Switches to a user that owns nothing. Without systemd, the supervisor runs as the agent's user, root on most
 * machines.
 */
function giveUpRoot(): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
}

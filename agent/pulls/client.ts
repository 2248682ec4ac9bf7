import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { withTimeout, type Clock } from '../../shared/clock.js';
import { readJsonLines, writeJsonLine } from '../proxy/json-lines.js';
import type { RelayOrder, RelayReply } from './order.js';

/** JavaScript memory of one relay. */
const HEAP_MB = 64;
const START_MS = 15_000;
/** The relay reads what strangers send: it is listened to for one number and no more. */
const REPLY_BYTES = 1_024;

export interface RunningRelay {
  /** On 127.0.0.1. */
  port: number;
  pid: number;
  /** Aborted when the relay has ended, whoever ended it. */
  ended: AbortSignal;
  /** Safe to repeat. */
  end(): void;
}

/** Starts a relay. Rejects where it cannot be started. */
export type StartRelay = (order: RelayOrder) => Promise<RunningRelay>;

/** A process for each relay. `program`: see main.ts. */
export function relayProcess(clock: Clock, program = fileURLToPath(new URL('./main.js', import.meta.url))): StartRelay {
  return async (order) => {
    const child = spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, program], {
      env: {},
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    });
    const socket = child.stdio[3] as Socket;
    const gone = new AbortController();
    const end = () => {
      gone.abort(new Error('the relay of the pull has ended'));
      // It ends with its socket; the signal is for one that hangs.
      socket.destroy();
      child.kill('SIGKILL');
    };
    child.on('error', end);
    child.on('exit', end);
    socket.on('error', end);
    const started = new Promise<number>((resolve, reject) => {
      gone.signal.addEventListener('abort', () => reject(gone.signal.reason as Error), { once: true });
      readJsonLines(socket, REPLY_BYTES, (reply) => {
        resolve(portIn(reply));
        socket.removeAllListeners('data').pause();
      });
    });
    try {
      writeJsonLine(socket, order);
      const port = await withTimeout(clock, START_MS, started, () => {
        throw new Error('the relay of the pull does not start');
      });
      return { port, pid: child.pid ?? 0, ended: gone.signal, end };
    } catch (error) {
      end();
      throw error;
    }
  };
}

function portIn(reply: unknown): number {
  const { port } = reply as Partial<RelayReply>;
  if (!Number.isInteger(port) || Number(port) < 1 || Number(port) > 65_535) throw new Error('it has sent no port');
  return Number(port);
}

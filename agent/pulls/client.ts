import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { withTimeout, type Clock } from '../../shared/clock.js';
import { readJsonLines, socketOf, writeJsonLine } from '../proxy/json-lines.js';
import type { RelayOrder, RelayReply } from './order.js';

/** JavaScript memory of one relay. */
const HEAP_MB = 64;
const START_MS = 15_000;
/** The relay reads what strangers send: it is listened to for one number and no more. */
const REPLY_BYTES = 1_024;

export interface RunningRelay {
  /** On 127.0.0.1. */
  port: number;
  /** As it says itself. */
  pid: number;
  /** Aborted when the relay has ended, whoever ended it. */
  ended: AbortSignal;
  /** Safe to repeat. */
  end(): void;
}

/** Starts a relay. Rejects where it cannot be started. */
export type StartRelay = (order: RelayOrder) => Promise<RunningRelay>;

/** A connection to a new relay, and what ends one that hangs. */
interface NewRelay {
  socket: Socket;
  kill: () => void;
}

/** Each relay is a process that the agent starts itself. `program`: see main.ts. */
export function relayProcess(clock: Clock, program = fileURLToPath(new URL('./main.js', import.meta.url))): StartRelay {
  return start(clock, () => {
    const child = spawn(process.execPath, [`--max-old-space-size=${HEAP_MB}`, program], {
      env: {},
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    });
    const socket = socketOf(child);
    child.on('exit', () => socket.destroy());
    return { socket, kill: () => child.kill('SIGKILL') };
  });
}

/** Each relay is a unit that systemd starts for a connection to this socket. One that hangs is ended by the limits of its unit. */
export function relayUnit(clock: Clock, path: string): StartRelay {
  return start(clock, () => ({ socket: connect({ path }), kill: () => undefined }));
}

function start(clock: Clock, open: () => NewRelay): StartRelay {
  return async (order) => {
    const { socket, kill } = open();
    const gone = new AbortController();
    const end = () => {
      gone.abort(new Error('the relay of the pull has ended'));
      // It ends with its socket; the signal is for one that hangs.
      socket.destroy();
      kill();
    };
    socket.on('error', end);
    socket.on('close', end);
    const started = new Promise<RelayReply>((resolve, reject) => {
      gone.signal.addEventListener('abort', () => reject(gone.signal.reason as Error), { once: true });
      readJsonLines(socket, REPLY_BYTES, (reply) => {
        resolve(replyIn(reply));
        // Not paused: the end of a socket that nobody reads is not noticed.
        socket.removeAllListeners('data').on('data', end);
      });
    });
    try {
      writeJsonLine(socket, order);
      const reply = await withTimeout(clock, START_MS, started, () => {
        throw new Error('the relay of the pull does not start');
      });
      return { ...reply, ended: gone.signal, end };
    } catch (error) {
      end();
      throw error;
    }
  };
}

function replyIn(reply: unknown): RelayReply {
  const { port, pid } = reply as Partial<RelayReply>;
  if (!Number.isInteger(port) || Number(port) < 1 || Number(port) > 65_535) throw new Error('it has sent no port');
  return { port: Number(port), pid: Number(pid) };
}

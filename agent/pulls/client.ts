import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { withTimeout, type Clock } from '../../shared/clock.js';
import { programFile } from '../../shared/version.js';
import { readJsonLines, socketOf, writeJsonLine } from '../proxy/json-lines.js';
import type { RelayOrder, RelayReply } from './order.js';

/** JavaScript memory of one relay. */
const HEAP_MB = 64;
const START_MS = 15_000;
/** The relay parses what strangers send, so the agent reads no more than a short reply from it. */
const REPLY_BYTES = 1_024;

export interface RunningRelay {
  /** On 127.0.0.1. */
  port: number;
  /** As reported by the relay. */
  pid: number;
  /** Aborted when the relay has ended, for whatever reason. */
  ended: AbortSignal;
  /** Ends the relay. Safe to repeat. */
  end(): void;
}

/** Starts a relay. Rejects if it cannot be started. */
export type StartRelay = (order: RelayOrder) => Promise<RunningRelay>;

/** A connection to a new relay, and a function that kills the relay if it hangs. */
interface NewRelay {
  socket: Socket;
  kill: () => void;
}

/** Starts each relay as a process of the agent. `program`: see main.ts. */
export function relayProcess(clock: Clock, program = programFile('agent/pulls/main')): StartRelay {
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

/**
 * Starts each relay as a unit of systemd, by a connection to the socket at `path`. The limits of the unit end a relay
 * that hangs.
 */
export function relayUnit(clock: Clock, path: string): StartRelay {
  return start(clock, () => ({ socket: connect({ path }), kill: () => undefined }));
}

function start(clock: Clock, open: () => NewRelay): StartRelay {
  return async (order) => {
    const { socket, kill } = open();
    const gone = new AbortController();
    const end = () => {
      gone.abort(new Error('the relay of the pull has ended'));
      // A relay ends with its socket; the signal is for one that hangs.
      socket.destroy();
      kill();
    };
    socket.on('error', end);
    socket.on('close', end);
    const started = new Promise<RelayReply>((resolve, reject) => {
      gone.signal.addEventListener('abort', () => reject(gone.signal.reason as Error), { once: true });
      readJsonLines(socket, REPLY_BYTES, (reply) => {
        resolve(replyIn(reply));
        // Keeps reading: Node does not notice the end of a socket that nobody reads.
        socket.removeAllListeners('data').on('data', end);
      });
    });
    try {
      writeJsonLine(socket, order);
      const reply = await withTimeout(clock, START_MS, started, () => {
        throw new Error('the pull relay does not start');
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
  if (!Number.isInteger(port) || Number(port) < 1 || Number(port) > 65_535)
    throw new Error('the pull relay sent no valid port');
  return { port: Number(port), pid: Number(pid) };
}

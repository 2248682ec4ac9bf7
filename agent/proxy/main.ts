#!/usr/bin/env node
import { createServer, Socket } from 'node:net';
import { systemClock } from '../../shared/clock.js';
import { createLogger } from '../../shared/logger.js';
import { MINUTE_MS } from '../../shared/time.js';
import { Supervisor } from './supervisor.js';

/** Descriptor of the listening socket from systemd, or of the connection to the agent that has started it. */
const GIVEN = 3;
const WORKER_IDLE_MS = MINUTE_MS;

/**
 * Runs the access proxy. As `socket-unit` it listens for the agent on the socket from systemd. As `child` it serves the
 * agent that has started it, and ends with it. As `worker` it serves one instance for a supervisor.
 */
const [, entry = '', role, idleMs] = process.argv;
// Loaded in the workers alone: the supervisor reads no byte from visitors, so it needs neither HTTP nor TLS.
if (role === 'worker') (await import('./worker.js')).runWorker(systemClock, Number(idleMs));
else {
  const logger = createLogger('agent-proxy', 'info');
  const supervisor = new Supervisor({ entry, idleMs: WORKER_IDLE_MS, clock: systemClock, logger });
  const stop = () => {
    supervisor.stop();
    server?.close();
  };
  let server: ReturnType<typeof createServer> | undefined;
  if (role === 'child') {
    const agent = new Socket({ fd: GIVEN, readable: true, writable: true });
    agent.once('close', stop);
    supervisor.serve(agent);
    agent.resume();
    // A terminal sends SIGINT to all of its programs, but the agent decides when the proxy ends.
    process.on('SIGINT', () => undefined);
  } else if (role === 'socket-unit') {
    server = createServer((agent) => supervisor.serve(agent)).listen({ fd: GIVEN });
  } else {
    process.stderr.write('usage: main.js child | socket-unit | worker; the agent and systemd start it\n');
    process.exitCode = 1;
  }
  process.once('SIGTERM', stop);
}

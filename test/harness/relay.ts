import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { fileURLToPath } from 'node:url';
import { relayProcess } from '../../agent/pulls/client.js';
import { ManualClock } from './manual-clock.js';

/** The pull relay as a program. */
const RELAY = fileURLToPath(new URL('../../dist/agent/pulls/main.js', import.meta.url));

/** Starts relays in processes of their own, as the agent does. */
export const startRelay = relayProcess(new ManualClock(), RELAY);

/** Does what systemd does for the socket of the pull relay: a relay for each connection, which it is given as descriptor 3. */
export function serveRelays(path: string): Server {
  return createServer({ pauseOnConnect: true }, (socket) => {
    const stdio = ['ignore', 'ignore', 'inherit', socket] as const;
    spawn(process.execPath, [RELAY], { env: {}, stdio: [...stdio] });
    socket.destroy();
  }).listen(path);
}

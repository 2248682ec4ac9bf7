import { fileURLToPath } from 'node:url';
import { relayProcess } from '../../agent/pulls/client.js';
import { systemClock } from '../../shared/clock.js';

/** The pull relay as a program. */
const RELAY = fileURLToPath(new URL('../../dist/agent/pulls/main.js', import.meta.url));

/** Starts relays in processes of their own, as the agent does. */
export const startRelay = relayProcess(systemClock, RELAY);

#!/usr/bin/env node
import { Socket } from 'node:net';
import { readJsonLines, writeJsonLine } from '../proxy/json-lines.js';
import type { RelayOrder, RelayReply } from './order.js';
import { Relay } from './relay.js';

/** Where the agent, or systemd in its place, puts the socket that it speaks by. */
const GIVEN = 3;
const MOST_ORDER_BYTES = 4 * 1024 * 1024;
/** The user and group `nobody`. */
const NOBODY = 65_534;

/** The pull relay of one pull, which ends with the agent's connection. */
giveUpRoot();
const agent = new Socket({ fd: GIVEN, readable: true, writable: true });
const end = () => process.kill(process.pid, 'SIGKILL');
agent.on('error', end);
agent.once('close', end);
readJsonLines(agent, MOST_ORDER_BYTES, (order) => {
  void new Relay(order as RelayOrder)
    .listen()
    .then((port) => writeJsonLine(agent, { port, pid: process.pid } satisfies RelayReply), end);
});
agent.resume();
// A terminal sends it to all of its programs: the agent decides when the relay ends.
process.on('SIGINT', () => undefined);

/** Whatever a registry sends is read by a user that owns nothing. Throws where that cannot be. */
function giveUpRoot(): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
}

#!/usr/bin/env node
import { Socket } from 'node:net';
import { readJsonLines, writeJsonLine } from '../proxy/json-lines.js';
import type { RelayOrder, RelayReply } from './order.js';
import { Relay } from './relay.js';

/** Descriptor of the connection to the agent, which the agent or systemd passes. */
const GIVEN = 3;
const MOST_ORDER_BYTES = 4 * 1024 * 1024;
/** The user and group `nobody`. */
const NOBODY = 65_534;

/** Runs the relay of one pull, which ends with the agent's connection. */
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
// A terminal sends SIGINT to all of its programs, but the agent decides when the relay ends.
process.on('SIGINT', () => undefined);

/** Switches to a user that owns nothing, before anything is read that a registry sends. Throws if it cannot. */
function giveUpRoot(): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
}

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { systemClock, type Timer } from '../../shared/clock.js';
import { FakeAgent, type FakeHostState } from './fake-agent.js';

/** As many enroll at once: the control plane signs a certificate for each. */
const TOGETHER = 16;
/** The next heartbeat of each. */
const beats = new Map<FakeAgent, Timer>();

/** Hosts that answer like agents but run nothing, for load and for trying the API. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      'control-plane': { type: 'string' },
      token: { type: 'string' },
      hosts: { type: 'string', default: '1' },
      gpus: { type: 'string', default: '8' },
      // Where the hosts stand from one run to the next.
      state: { type: 'string' },
    },
  });
  const { 'control-plane': address, token, state } = values;
  const [hosts, gpus] = [Number(values.hosts), Number(values.gpus)];
  const known = state !== undefined && existsSync(state);
  if (!address || !(token || known) || !(hosts > 0) || !(gpus > 0)) {
    throw new Error(
      'usage: npm run fake-hosts -- --control-plane HOST:PORT --token TOKEN [--hosts N] [--gpus N] [--state FILE]',
    );
  }
  const agents = known ? resumed(address, state) : await enrolled(address, token ?? '', hosts, gpus);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      for (const timer of beats.values()) timer.cancel();
      if (state !== undefined) save(state, agents);
      agents.forEach((agent) => agent.close());
    });
  if (state !== undefined) save(state, agents);
  await Promise.all(agents.map(live));
  process.stdout.write(`${JSON.stringify({ hosts: agents.map(({ hostId }) => hostId), gpus_each: gpus })}\n`);
}

async function enrolled(address: string, token: string, hosts: number, gpus: number): Promise<FakeAgent[]> {
  const agents: FakeAgent[] = [];
  while (agents.length < hosts) {
    const next = Array.from({ length: Math.min(TOGETHER, hosts - agents.length) }, (_, index) => {
      const name = `fake-${agents.length + index + 1}`;
      return FakeAgent.enroll(address, token, { name, gpus });
    });
    agents.push(...(await Promise.all(next)));
  }
  return agents;
}

function resumed(address: string, file: string): FakeAgent[] {
  const states = JSON.parse(readFileSync(file, 'utf8')) as FakeHostState[];
  return states.map((state) => FakeAgent.resume(address, state));
}

function save(file: string, agents: FakeAgent[]): void {
  writeFileSync(file, JSON.stringify(agents.map(({ state }) => state)), { mode: 0o600 });
}

/** Heartbeats, and a new stream where one has broken. */
async function live(agent: FakeAgent): Promise<void> {
  await agent.connect();
  const beat = () => {
    if (agent.closed) return;
    if (agent.connected) agent.beat();
    else agent.connect().catch(() => undefined);
    beats.set(agent, systemClock.schedule(agent.heartbeatMs, beat));
  };
  beat();
}

main().catch((error: unknown) => {
  process.stderr.write(`fake-hosts: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});

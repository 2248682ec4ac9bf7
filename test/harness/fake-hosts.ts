import { parseArgs } from 'node:util';
import { systemClock } from '../../shared/clock.js';
import { FakeAgent } from './fake-agent.js';

/** Hosts that answer like agents but run nothing, for load and for trying the API. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      'control-plane': { type: 'string' },
      token: { type: 'string' },
      hosts: { type: 'string', default: '1' },
      gpus: { type: 'string', default: '8' },
    },
  });
  const { 'control-plane': address, token } = values;
  const [hosts, gpus] = [Number(values.hosts), Number(values.gpus)];
  if (!address || !token || !(hosts > 0) || !(gpus > 0)) {
    throw new Error('usage: npm run fake-hosts -- --control-plane HOST:PORT --token TOKEN [--hosts N] [--gpus N]');
  }
  const agents: FakeAgent[] = [];
  for (let index = 1; index <= hosts; index++) {
    const agent = await FakeAgent.enroll(address, token, { name: `fake-${index}`, gpus });
    agents.push(agent);
    await live(agent);
  }
  process.stdout.write(`${JSON.stringify({ hosts: agents.map(({ hostId }) => hostId), gpus_each: gpus })}\n`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => agents.forEach((agent) => agent.close()));
}

/** Heartbeats, and a new stream where one has broken. */
async function live(agent: FakeAgent): Promise<void> {
  await agent.connect();
  const beat = () => {
    if (agent.closed) return;
    if (agent.connected) agent.beat();
    else agent.connect().catch(() => undefined);
    systemClock.schedule(agent.heartbeatMs, beat);
  };
  beat();
}

main().catch((error: unknown) => {
  process.stderr.write(`fake-hosts: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});

import type { components } from '../../api/index.js';
import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import type { Define } from '../invocation/define.js';
import type { Invocation } from '../invocation/invocation.js';
import { minuteOf } from '../output/times.js';
import { confirm } from '../prompts/confirm.js';
import { withYes } from './options.js';

type Rollout = components['schemas']['RolloutDetail'];

/** Defines `gpurent machines upgrade`: agents whose owners allow it upgrade themselves. */
export const defineUpgrades: Define = (command, invocation) => {
  withYes(
    command
      .command('upgrade')
      .description('upgrade the agents whose owners allow it to the release that this control plane gives to hosts')
      .option('--status', 'only show how far the newest rollout is')
      .option('--stop', 'ask no further host'),
  ).action(async ({ status, stop, yes }: { status?: true; stop?: true; yes?: true }) => {
    if (!status && !stop) {
      await confirm(invocation, yes, 'Upgrade these agents, one host after the other; workloads keep running');
      return show(invocation, await invocation.gpurent().post('/v1/operator/rollouts'));
    }
    const { items } = await invocation.gpurent().get('/v1/operator/rollouts', { params: { query: { limit: 1 } } });
    const [newest] = items;
    if (!newest) throw new CliError(EXIT.failed, 'no rollout was started yet', 'Start one: gpurent machines upgrade');
    const params = { path: { id: newest.id } };
    show(
      invocation,
      stop
        ? await invocation.gpurent().post('/v1/operator/rollouts/{id}/stop', { params })
        : await invocation.gpurent().get('/v1/operator/rollouts/{id}', { params }),
    );
  });
};

function show(invocation: Invocation, rollout: Rollout): void {
  invocation.facts(rollout, [
    ['id', rollout.id],
    ['version', rollout.version],
    ['started', minuteOf(rollout.started_at)],
    ['waiting', String(rollout.waiting)],
    ['under way', String(rollout.under_way)],
    ['upgraded', String(rollout.upgraded)],
    ['failed', String(rollout.failed)],
    ['stopped', rollout.stop_reason],
    ['ended', rollout.ended_at === null ? null : minuteOf(rollout.ended_at)],
    ...rollout.failures.map(({ machine_name, reason }) => [machine_name, reason] as const),
  ]);
}

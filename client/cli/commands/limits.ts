import { Option } from 'commander';
import { usageError } from '../errors/cli-error.js';
import { factsOf } from '../instances/facts.js';
import { findInstance } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import { durationOrOff, INSTANCE, limitOf, minutesOrOff, moneyOrOff, type OrOff } from './options.js';

interface Options {
  label?: string;
  for?: OrOff;
  maxCost?: OrOff;
  idleStop?: OrOff;
  onLimit?: 'stop' | 'destroy';
}

export const define: Define = (command, invocation) => {
  command
    .argument(...INSTANCE)
    .option('--label <label>', 'another label')
    .option('--for <duration>', 'stop it after so long from now; or off', durationOrOff)
    .option('--max-cost <dollars>', 'stop it when it has cost so much in all; or off', moneyOrOff)
    .option('--idle-stop <duration>', 'stop it when it was idle for so long; or off', minutesOrOff)
    .addOption(new Option('--on-limit <act>', 'what these limits do').choices(['stop', 'destroy']))
    .action(async (name: string, options: Options) => {
      const { label, for: time, maxCost, idleStop, onLimit } = options;
      if (Object.keys(options).length === 0) throw usageError('no limit is given', 'See gpurent help limits.');
      const gpurent = invocation.gpurent();
      const { id } = await findInstance(gpurent, name);
      const now = invocation.terminal.now();
      const body = {
        ...(label === undefined ? {} : { label }),
        ...(time === undefined ? {} : { stop_at: time === 'off' ? null : new Date(now + time).toISOString() }),
        ...(maxCost === undefined ? {} : { max_charge_micro: limitOf(maxCost) }),
        ...(idleStop === undefined ? {} : { idle_stop_minutes: limitOf(idleStop) }),
        ...(onLimit === undefined ? {} : { on_limit: onLimit }),
      };
      const instance = await gpurent.patch('/v1/instances/{id}', { params: { path: { id } }, body });
      invocation.facts(instance, factsOf(instance, now));
    });
};

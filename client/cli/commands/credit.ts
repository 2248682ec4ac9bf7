import type { Define } from '../invocation/define.js';
import { findOrganization } from '../operator/find.js';
import { dollars } from '../output/money.js';
import { confirm } from '../prompts/confirm.js';
import { money, withYes } from './options.js';

export const define: Define = (command, invocation) => {
  withYes(command.argument('<organization>', 'its id, the beginning of it, or its name'))
    .argument('<dollars>', 'how much; to take credit back, put -- before a negative amount', money)
    .requiredOption('--reason <text>', 'why; the organization reads it')
    .action(async (wanted: string, amount_micro: number, { reason, yes }: { reason: string; yes?: true }) => {
      const gpurent = invocation.gpurent();
      const { id, name } = await findOrganization(gpurent, wanted);
      await confirm(invocation, yes, `Grant ${dollars(amount_micro)} to ${name} (${id})`);
      const init = { params: { path: { id } }, body: { amount_micro, reason } };
      const credit = await gpurent.post('/v1/operator/organizations/{id}/credits', init);
      invocation.object(credit, () => [`${name} has ${dollars(credit.balance_micro)} now.`]);
    });
};

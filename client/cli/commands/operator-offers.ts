import type { components } from '../../api/index.js';
import { only } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import type { Invocation } from '../invocation/invocation.js';
import { dollars } from '../output/money.js';
import type { Column } from '../output/table.js';
import { confirm } from '../prompts/confirm.js';
import { findMachine } from '../operator/find.js';
import { money, whole, withYes } from './options.js';

type Offer = components['schemas']['OperatedOffer'];

const COLUMNS: readonly Column<Offer>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'STATE', of: ({ state, unavailable_reason }) => unavailable_reason ?? state },
  { title: 'GPUS', of: ({ num_gpus, gpu_model }) => `${num_gpus} x ${gpu_model ?? '-'}` },
  { title: '$/HOUR', of: ({ price_per_hour_micro }) => dollars(price_per_hour_micro), align: 'right' },
  { title: '$/GB/HOUR', of: ({ storage_price_per_gb_hour_micro: price }) => dollars(price), align: 'right', yields: 2 },
  { title: 'MACHINE', of: ({ machine }) => machine.name, yields: 1 },
];

interface Prices {
  price?: number;
  storagePrice?: number;
}

/** Adds what operators do with offers. */
export const defineOperatorOffers: Define = (command, invocation) => {
  command
    .command('all')
    .description('for operators: every offer, with why it is not available')
    .action(async () => {
      const { items } = await invocation.gpurent().get('/v1/operator/offers');
      invocation.list(items, COLUMNS, 'There are no offers. Make one: gpurent offers create MACHINE');
    });
  command
    .command('create <machine>')
    .description('for operators: rent out GPUs of a machine, by its name or id')
    .argument('<gpus>', 'how many', whole(0, 1_000))
    .requiredOption('--price <dollars>', 'for an hour in which it runs', money)
    .option('--storage-price <dollars>', 'for a GB in an hour in which it is stopped', money, 0)
    .action(async (wanted: string, num_gpus: number, { price, storagePrice }: Required<Prices>) => {
      const gpurent = invocation.gpurent();
      const { id: machine_id } = await findMachine(gpurent, wanted);
      const prices = { price_per_hour_micro: price, storage_price_per_gb_hour_micro: storagePrice };
      show(invocation, await gpurent.post('/v1/operator/offers', { body: { machine_id, num_gpus, ...prices } }));
    });
  command
    .command('reprice <offer>')
    .description('for operators: other prices; instances keep theirs')
    .option('--price <dollars>', 'for an hour in which it runs', money)
    .option('--storage-price <dollars>', 'for a GB in an hour in which it is stopped', money)
    .action(async (wanted: string, { price, storagePrice }: Prices) => {
      const { id } = await find(invocation, wanted);
      const body = {
        ...(price === undefined ? {} : { price_per_hour_micro: price }),
        ...(storagePrice === undefined ? {} : { storage_price_per_gb_hour_micro: storagePrice }),
      };
      show(
        invocation,
        await invocation.gpurent().patch('/v1/operator/offers/{id}', { params: { path: { id } }, body }),
      );
    });
  withYes(command.command('withdraw <offer>').description('for operators: take an offer off the market')).action(
    async (wanted: string, { yes }: { yes?: true }) => {
      const { id } = await find(invocation, wanted);
      await confirm(invocation, yes, `Withdraw the offer ${id}; its instances go on`);
      await invocation.gpurent().delete('/v1/operator/offers/{id}', { params: { path: { id } } });
      invocation.object({ id }, () => [`The offer ${id} is withdrawn.`]);
    },
  );
};

const show = (invocation: Invocation, offer: Offer) =>
  invocation.object(offer, () => [
    `${offer.id}: ${offer.num_gpus} x ${offer.gpu_model ?? '-'} on ${offer.machine.name}, ${dollars(offer.price_per_hour_micro)} an hour, ${offer.unavailable_reason ?? offer.state}`,
  ]);

async function find(invocation: Invocation, wanted: string): Promise<Offer> {
  const { items } = await invocation.gpurent().get('/v1/operator/offers');
  return only(items, wanted, 'offer', ({ id }) => ({ id, name: null }), 'gpurent offers all');
}

import { Option } from 'commander';
import type { components } from '../../api/index.js';
import { cores, memory } from '../../text/sizes.js';
import type { Define } from '../invocation/define.js';
import { matchesModel, offersFor } from '../deploy/offers.js';
import { dollars } from '../output/money.js';
import type { Column } from '../output/table.js';
import { minuteOf } from '../output/times.js';
import { money, whole } from './options.js';
import { defineOperatorOffers } from './operator-offers.js';

type Offer = components['schemas']['Offer'];

const COLUMNS: readonly Column<Offer>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'GPUS', of: ({ num_gpus }) => num_gpus, align: 'right' },
  { title: 'MODEL', of: ({ gpu_model }) => gpu_model },
  {
    title: 'GPU MEMORY',
    of: ({ gpu_memory_mb }) => (gpu_memory_mb === null ? null : memory(gpu_memory_mb)),
    align: 'right',
    yields: 1,
  },
  { title: 'CORES', of: ({ cpu_cores }) => cores(cpu_cores), align: 'right', yields: 4 },
  { title: 'RAM', of: ({ memory_mb }) => memory(memory_mb), align: 'right', yields: 3 },
  { title: '$/HOUR', of: ({ price_per_hour_micro }) => dollars(price_per_hour_micro), align: 'right' },
  { title: 'REGION', of: ({ machine }) => machine.region, yields: 2 },
  { title: 'MACHINE', of: ({ machine }) => machine.name, yields: 6 },
  { title: 'MACHINE CORES', of: ({ machine }) => machine.cpu_cores, align: 'right', yields: 9 },
  { title: 'MACHINE RAM', of: ({ machine }) => memory(machine.memory_mb), align: 'right', yields: 8 },
  { title: 'DISK FREE', of: ({ machine }) => `${machine.disk_available_gb} GB`, align: 'right', yields: 5 },
  { title: 'MAINTENANCE', of: ({ machine }) => minuteOf(machine.next_maintenance), yields: 7 },
];

interface Wanted {
  gpu?: string;
  gpus?: number;
  maxPrice?: number;
  region?: string;
  vm?: true;
  sort: 'price_asc' | 'price_desc' | 'newest';
}

export const define: Define = (command, invocation) => {
  command
    .option('--gpu <model>', 'only this model; a part of its name is enough')
    .option('--gpus <count>', 'only so many GPUs', whole(0, 1_000))
    .option('--max-price <dollars>', 'at most so much an hour', money)
    .option('--region <region>', 'only this region')
    .option('--vm', 'only machines that can run virtual machines')
    .addOption(
      new Option('--sort <order>', 'the order').choices(['price_asc', 'price_desc', 'newest']).default('price_asc'),
    )
    .action(async ({ gpu, ...wanted }: Wanted) => {
      const offers = await offersFor(invocation.gpurent(), wanted);
      const matching = offers.filter((offer) => matchesModel(offer, gpu));
      invocation.list(matching, COLUMNS, 'Nothing like this can be rented now.');
    });
  defineOperatorOffers(command, invocation);
};

import { z } from 'zod';
import type { components } from '../../api/index.js';
import { answer, fitting } from '../answers.js';
import { coverage } from '../money.js';
import { addTool, type Toolbox } from '../tool.js';
import { withoutBrackets } from '../untrusted.js';
import { balanceOf, offerView, templateView } from '../views.js';

type Offer = components['schemas']['Offer'];

/** The most offers that one search looks at, the cheapest first. */
const MOST_LOOKED_AT = 1_000;

const OfferFilter = z.object({
  gpu_model: z.string().max(100).optional().describe('Part of the name of the GPU model, such as `H100`'),
  num_gpus: z.int().min(1).optional().describe('The number of GPUs that are rented together'),
  min_gpu_memory_mb: z.int().min(0).optional().describe('The least memory of each GPU'),
  max_price_per_hour_micro: z.int().min(0).optional().describe('The highest price per hour, in micro-dollars'),
  vm_capable: z.boolean().optional().describe('True: only machines that can run virtual machines'),
  limit: z.int().min(1).max(50).default(10).describe('The most offers to return'),
});

const TemplateFilter = z.object({
  tab: z.enum(['recommended', 'system', 'public', 'organization']).optional().describe('Only templates of this kind'),
  limit: z.int().min(1).max(50).default(20).describe('The most templates to return'),
});

/** Adds what one looks at before a deploy. */
export function addMarketTools(toolbox: Toolbox): void {
  const { gpurent } = toolbox;
  addTool(toolbox, {
    name: 'find_offers',
    title: 'Find GPUs to rent',
    description:
      'Lists GPUs that can be rented now, the cheapest first, with the price per hour (`price_per_hour_micro`, in millionths of a dollar) and what the balance covers. `cpu_cores` and `memory_mb` of an offer are what an instance gets; the totals of its machine are shared by all instances there.',
    does: 'reads',
    input: OfferFilter,
    run: async ({ gpu_model, min_gpu_memory_mb = 0, limit, ...given }) => {
      const model = gpu_model === undefined ? '' : withoutBrackets(gpu_model).toLowerCase();
      const fits = (offer: Offer) =>
        offer.state === 'available' &&
        (offer.gpu_model ?? '').toLowerCase().includes(model) &&
        (offer.gpu_memory_mb ?? 0) >= min_gpu_memory_mb;
      const found: Offer[] = [];
      let lookedAt = 0;
      for await (const offer of gpurent.items('/v1/offers', { params: { query: definedOf(given) } })) {
        if (fits(offer)) found.push(offer);
        lookedAt += 1;
        if (found.length === limit || lookedAt === MOST_LOOKED_AT) break;
      }
      const balance = await balanceOf(gpurent);
      const { items, left_out } = fitting(found, offerView);
      const count = items.length === 1 ? '1 offer' : `${items.length} offers`;
      return answer(`${count} found. ${coverage(balance)}`, { offers: items, left_out, balance });
    },
  });
  addTool(toolbox, {
    name: 'list_templates',
    title: 'List templates',
    description:
      'Lists templates: what an instance can run, such as PyTorch with JupyterLab. A deploy needs the id of one.',
    does: 'reads',
    input: TemplateFilter,
    run: async ({ tab, limit }) => {
      const query = { limit, ...(tab === undefined ? {} : { tab }) };
      const { items, next_cursor } = await gpurent.get('/v1/templates', { params: { query } });
      const views = fitting(items, templateView);
      const more = views.left_out > 0 || Boolean(next_cursor);
      return answer(`${views.items.length} templates${more ? ', and there are more' : ''}.`, {
        templates: views.items,
        more,
      });
    },
  });
}

function definedOf<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

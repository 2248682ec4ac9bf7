import { expect, it } from 'vitest';
import { gpuUses } from '../../console/src/pages/operator/machines/machine/gpu-use.js';
import type { Machine, MachineUsage } from '../../console/src/pages/operator/models.js';
import { faultsOf, NO_PRICES, pricesFor } from '../../console/src/pages/operator/offers/prices/new-prices.js';

it('reads new prices by the GPU or the offer to the micro-dollar, and leaves what is empty', () => {
  const draft = { ...NO_PRICES, price: '0.333333' };
  expect(pricesFor({ num_gpus: 3 }, draft)).toEqual({ price_per_hour_micro: 999_999 });
  expect(pricesFor({ num_gpus: 3 }, { ...draft, per: 'offer', storage: '0' })).toEqual({
    price_per_hour_micro: 333_333,
    storage_price_per_gb_hour_micro: 0,
  });
  expect(faultsOf(draft)).toEqual({});
  expect(faultsOf(NO_PRICES)).toHaveProperty('price');
  expect(faultsOf({ ...NO_PRICES, price: '1.0000001', storage: 'free' })).toMatchObject({
    price: expect.stringContaining('six digits') as string,
    storage: expect.stringContaining('six digits') as string,
  });
});

it('gives each GPU its own use, in the order in which its instance has them', () => {
  const gpu = (uuid: string, instance_id: string | null) => ({ uuid, instance_id });
  const machine = { gpus: [gpu('a', 'one'), gpu('b', 'other'), gpu('c', 'one'), gpu('d', null)] } as Machine;
  const use = (...use_percent: (number | null)[]) => ({ use_percent });
  const usage = [
    { instance_id: 'one', gpus: [use(10, 20, null), use(50)] },
    { instance_id: 'other', gpus: [use(null)] },
  ] as MachineUsage[];
  expect([...gpuUses(machine, usage)]).toEqual([
    ['a', { percent: 20, meanPercent: 15 }],
    ['c', { percent: 50, meanPercent: 50 }],
  ]);
});

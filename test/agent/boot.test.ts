import { expect, it } from 'vitest';
import { readBootId } from '../../agent/host/inventory.js';
import { TestHost } from './host.js';

it('the id of a boot is of the kernel and of the first process, and stays', async () => {
  const id = await readBootId();
  expect(id).toMatch(/^[\da-f-]{36}\/\d+$/);
  expect(await readBootId()).toBe(id);
});

it('a boot of the kernel is one, and so is a start of the first process', async () => {
  const host = new TestHost();
  await host.outages.noteBoot({ id: 'kernel/1', at: 0 });
  const isNew = (id: string) => host.outages.isNewBoot(id);
  expect([isNew('kernel/1'), isNew('kernel/2'), isNew('another/1')]).toEqual([false, true, true]);
  // Noted by an agent that knew of the kernel alone.
  await host.outages.noteBoot({ id: 'kernel', at: 0 });
  expect([isNew('kernel/1'), isNew('another/1')]).toEqual([false, true]);
  await host.close();
});

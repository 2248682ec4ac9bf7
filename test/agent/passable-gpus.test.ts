import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Gpu } from '../../agent/host/gpus/driver.js';
import { holdersOf } from '../../agent/host/passthrough/device-holders.js';
import { GpuStateFile } from '../../agent/host/passthrough/gpu-state-file.js';
import { VfioGpus, type HostGpus } from '../../agent/host/passthrough/vfio-gpus.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil, files } from '../harness/advance-until.js';
import { ManualClock } from '../harness/manual-clock.js';
import { PciTree } from '../rig/pci-tree.js';

const SLOTS = ['0000:0b:00', '0000:0c:00'];
const [ONE, OTHER] = ['GPU-one', 'GPU-other'];

let tree: PciTree;
let clock: ManualClock;
let holders: number[];
let awake: string[];

beforeEach(() => {
  tree = PciTree.of('x570-gtx-1080-ti-gt-710');
  clock = new ManualClock();
  [holders, awake] = [[], []];
});
afterEach(() => tree.remove());

/** What the driver's tool would show of those in these slots. */
const driverOf = (slots: string[]): HostGpus => ({
  inventory: async () => {
    const gpus = slots.map((pciAddress, index): Gpu => {
      const traits = {
        uuid: [ONE, OTHER][index] ?? '',
        index,
        model: 'GPU',
        memoryMb: 1_024,
        processes: [],
        pciAddress,
      };
      return { ...traits, healthy: true, reason: '' };
    });
    const present = gpus.filter(({ pciAddress }) => tree.driverNow(`${pciAddress}.0`) === 'nvidia');
    if (present.length === 0) throw new Error('No devices were found');
    return { gpus: present, driverVersion: '590', cudaVersion: '13.0' };
  },
  use: async () => new Map(),
  attachment: () => ({ env: [], deviceRequests: [] }),
  disablePersistence: async (uuid) => void awake.push(`${uuid} let go`),
  restorePersistence: async (uuid) => void awake.push(`${uuid} kept again`),
});

/** The agent's view; made anew as after a restart of it. */
function make(slots = SLOTS): VfioGpus {
  const notes = new GpuStateFile(join(tree.folder, 'gpus.json'), () => {});
  return new VfioGpus({
    gpus: driverOf(slots),
    bus: tree,
    notes,
    holders: async () => holders,
    runnerId: 64_000,
    clock,
  });
}

/** What `work` comes to while time passes. */
async function asTimePasses<T>(work: Promise<T>): Promise<T> {
  let isDone = false;
  void work.catch(() => undefined).finally(() => (isDone = true));
  await advanceUntil('it to be done', { clock, stepMs: 1_000, parties: [files] }, () => isDone);
  return work;
}

const shown = async (gpus: VfioGpus) =>
  (await gpus.inventory()).gpus.map(({ uuid, healthy }) => `${uuid} ${healthy ? 'well' : 'not well'}`);

it('a GPU that a virtual machine has is still one of the host’s, also after a restart of the agent', async () => {
  const gpus = make();
  expect(await shown(gpus)).toEqual([`${ONE} well`, `${OTHER} well`]);
  expect(await gpus.passthrough.devices([ONE])).toEqual({
    paths: ['/dev/vfio/vfio', join(tree.folder, 'dev/vfio/30')],
    addresses: ['0000:0b:00.0', '0000:0b:00.1'],
  });
  await gpus.passthrough.take([ONE]);
  expect(awake).toEqual([`${ONE} let go`]);
  expect([tree.driverNow('0000:0b:00.0'), tree.driverNow('0000:0b:00.1')]).toEqual(['vfio-pci', 'vfio-pci']);
  expect(tree.opened).toEqual([[30, 64_000]]);
  for (const each of [gpus, make()]) {
    expect(await shown(each)).toEqual([`${ONE} well`, `${OTHER} well`]);
    expect(await each.passthrough.taken()).toEqual([ONE]);
  }
  await make().passthrough.take([OTHER]);
  expect(await make().inventory()).toMatchObject({ driverVersion: '590', gpus: [{ uuid: ONE }, { uuid: OTHER }] });
});

it('is taken once, and is back with its drivers when it is given back', async () => {
  const gpus = make();
  await gpus.inventory();
  await gpus.passthrough.take([ONE]);
  const writes = tree.writes.length;
  await gpus.passthrough.take([ONE]);
  expect(tree.writes).toHaveLength(writes);
  await gpus.passthrough.giveBack([ONE, OTHER]);
  expect([tree.driverNow('0000:0b:00.0'), tree.driverNow('0000:0b:00.1')]).toEqual(['nvidia', 'snd_hda_intel']);
  expect(await gpus.passthrough.taken()).toEqual([]);
  await gpus.passthrough.giveBack([ONE]);
});

it('that its driver no longer lists stays one of the host’s, as missing, until another card is in its slot', async () => {
  const gpus = make();
  await gpus.inventory();
  // It stays bound to the driver, as a card that has fallen off the bus.
  for (const each of [make(SLOTS.slice(0, 1)), make(SLOTS.slice(0, 1))])
    expect((await each.inventory()).gpus).toMatchObject([
      { uuid: ONE, healthy: true },
      { uuid: OTHER, healthy: false, missing: true, reason: expect.stringMatching(/no longer lists it/) as string },
    ]);
  expect(await shown(gpus)).toEqual([`${ONE} well`, `${OTHER} well`]);
  expect(await shown(make(SLOTS.slice(1)))).toEqual([`${ONE} well`]);
});

it('that does not come back is not well, says why, and is well once it has', async () => {
  const gpus = make();
  await gpus.inventory();
  await gpus.passthrough.take([ONE]);
  tree.broken.add('0000:0b:00.0');
  await expect(asTimePasses(gpus.passthrough.giveBack([ONE, OTHER]))).rejects.toMatchObject({
    code: 'GPUS_UNAVAILABLE',
  });
  expect((await gpus.inventory()).gpus[0]).toMatchObject({
    healthy: false,
    reason: expect.stringContaining('it has not come back from a virtual machine') as string,
  });
  // From then on nobody waits for it, who asks for another one least of all.
  await expect(gpus.passthrough.giveBack([ONE])).rejects.toThrow(/has not come back/);
  await gpus.passthrough.giveBack([OTHER]);
  tree.broken.clear();
  await gpus.passthrough.giveBack([ONE]);
  expect(await shown(gpus)).toEqual([`${ONE} well`, `${OTHER} well`]);
});

it('is one of the host’s all the while it goes from one driver to the other', async () => {
  const gpus = make();
  await gpus.inventory();
  const write = tree.write.bind(tree);
  const seen: string[][] = [];
  tree.write = async (step) => {
    await write(step);
    seen.push(await shown(gpus));
  };
  await gpus.passthrough.take([ONE]);
  await gpus.passthrough.giveBack([ONE]);
  expect(seen).toHaveLength(12);
  for (const each of seen) expect(each).toEqual([`${ONE} well`, `${OTHER} well`]);
});

it('that cannot be taken whole goes back whole', async () => {
  const gpus = make();
  await gpus.inventory();
  const write = tree.write.bind(tree);
  tree.write = async (step) => {
    if (step.text === 'vfio-pci' && step.file.includes('0b:00.1')) throw new Error('the kernel refuses');
    await write(step);
  };
  await expect(gpus.passthrough.take([ONE])).rejects.toThrow(/the kernel refuses/);
  expect([tree.driverNow('0000:0b:00.0'), tree.driverNow('0000:0b:00.1')]).toEqual(['nvidia', 'snd_hda_intel']);
  expect(await shown(gpus)).toEqual([`${ONE} well`, `${OTHER} well`]);
});

it.each([1, 2, 3, 4, 5, 6])(
  'is found and brought back after an agent has died at write %i of taking it',
  async (last) => {
    const gpus = make();
    await gpus.inventory();
    tree.dieAfter(last);
    void gpus.passthrough.take([ONE]).catch(() => undefined);
    await eventually('the writes', () => tree.writes.length === last);
    tree.dieAfter(Infinity);
    const next = make();
    expect((await next.inventory()).gpus.map(({ uuid }) => uuid)).toEqual([ONE, OTHER]);
    await next.passthrough.giveBack([ONE, OTHER]);
    expect(await shown(next)).toEqual([`${ONE} well`, `${OTHER} well`]);
    expect(tree.driverNow('0000:0b:00.0')).toBe('nvidia');
  },
);

it('that the kernel does not let go of is not well, and holds up no other', async () => {
  const gpus = make();
  await gpus.inventory();
  tree.dieAfter(1);
  await expect(asTimePasses(gpus.passthrough.take([ONE]))).rejects.toThrow(/does not let go of .* within 30 seconds/);
  tree.dieAfter(Infinity);
  await gpus.passthrough.take([OTHER]);
  expect(await gpus.passthrough.taken()).toContain(OTHER);
});

it('that something on the host has open is not taken, and stays with its drivers', async () => {
  const gpus = make();
  await gpus.inventory();
  holders = [77];
  await expect(asTimePasses(gpus.passthrough.take([ONE]))).rejects.toThrow(/0000:0b:00 are open in process 77/);
  expect(tree.writes).toEqual([]);
});

it('who has one open is read from the processes themselves', async () => {
  const proc = join(tree.folder, 'proc');
  const information = join(proc, 'driver/nvidia/gpus/0000:0b:00.0');
  mkdirSync(information, { recursive: true });
  writeFileSync(join(information, 'information'), 'Model: \t GPU\nDevice Minor: \t 3\n');
  for (const [pid, target] of Object.entries({ 10: '/dev/nvidia3', 11: '/dev/nvidia30', 12: '/dev/null' })) {
    mkdirSync(join(proc, pid, 'fd'), { recursive: true });
    symlinkSync(target, join(proc, pid, 'fd/5'));
  }
  expect(await holdersOf(['0000:0b:00'], proc)).toEqual([10]);
  await expect(holdersOf(['0000:0c:00'], proc)).rejects.toThrow(/does not say which device/);
});

it('a host whose GPUs share their groups, or whose kernel cannot give them away, says so', async () => {
  expect(await make().passthrough.whyUnavailable()).toBeUndefined();
  tree.remove();
  tree = PciTree.of('msi-b450-gtx-1080-ti-iommu-off');
  expect(await make(['0000:29:00']).passthrough.whyUnavailable()).toMatch(/is in no IOMMU group/);
});

import { mkdirSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { MIB } from '../../shared/bytes.js';
import { parseConfig } from '../../agent/config.js';
import { readInventory } from '../../agent/host/inventory.js';
import type { GpuInventory } from '../../agent/host/gpus/driver.js';
import { kernelGpus } from '../../agent/host/nvidia/kernel-list.js';
import { NvidiaGpus } from '../../agent/host/nvidia/nvidia.js';
import { GpuStateFile } from '../../agent/host/passthrough/gpu-state-file.js';
import { ManualClock } from '../harness/manual-clock.js';
import { NvidiaRig } from '../rig/nvidia-rig.js';

const [ONE, DEAD, OTHER] = ['a', 'b', 'c'].map((letter) => `GPU-${letter.repeat(8)}-0000-4000-8000-000000000000`) as [
  string,
  string,
  string,
];

let rig: NvidiaRig;
let path: string | undefined;
let remembered: GpuInventory | undefined;

beforeEach(() => {
  rig = new NvidiaRig([ONE, DEAD, OTHER].map((uuid) => ({ uuid })));
  path = process.env['PATH'];
  process.env['PATH'] = `${rig.bin}:${path}`;
  remembered = undefined;
});
afterEach(() => {
  process.env['PATH'] = path;
  rig.remove();
});

/** The driver of a process that has just started. */
function driver({ mustAnswer = false } = {}): NvidiaGpus {
  const listed = () => kernelGpus(join(rig.folder, 'proc'));
  return new NvidiaGpus(new ManualClock(), 'device-requests', {
    remembered: async () => remembered,
    listed,
    mustAnswer,
  });
}

/** What the kernel's driver lists; it has not read those of which it shows no UUID. */
function list(uuids: readonly string[]): void {
  for (const [index, uuid] of uuids.entries()) {
    const folder = join(rig.folder, `proc/driver/nvidia/gpus/0000:0${index + 1}:00.0`);
    mkdirSync(folder, { recursive: true });
    const shown = uuid || 'GPU-????????-????-????-????-????????????';
    writeFileSync(join(folder, 'information'), `Model: \t\t NVIDIA H100\nIRQ: \t\t 44\nGPU UUID: \t ${shown}\n`);
  }
}

const shown = async (gpus: NvidiaGpus) =>
  (await gpus.inventory()).gpus.map(({ uuid, healthy, index }) => `${index} ${uuid} ${healthy ? 'well' : 'not well'}`);

it('a start beside a dead GPU shows the others from the list of the kernel, and the dead one with the reason', async () => {
  rig.loses(DEAD);
  list(['', DEAD, '']);
  expect(await shown(driver())).toEqual([`0 ${ONE} well`, `1 ${DEAD} not well`, `2 ${OTHER} well`]);
  const inventory = await driver().inventory();
  expect(inventory).toMatchObject({ driverVersion: '550.54.15', cudaVersion: '12.4' });
  expect(inventory.gpus[1]).toMatchObject({
    model: 'NVIDIA H100',
    reason: expect.stringContaining('GPU is lost') as string,
  });
  // An enrollment takes what works.
  expect(await shown(driver({ mustAnswer: true }))).toHaveLength(3);
});

it('a dead GPU whose UUID only this host remembers is shown by it; one that nobody knows is left out', async () => {
  list(['', '', '']);
  remembered = await driver().inventory();
  rig.loses(DEAD);
  expect(await shown(driver())).toEqual([`0 ${ONE} well`, `1 ${DEAD} not well`, `2 ${OTHER} well`]);
  expect((await driver().inventory()).gpus[1]).toMatchObject({ memoryMb: 81_559 });
  remembered = undefined;
  writeFileSync(join(rig.folder, 'lost'), '0000:02:00.0');
  expect(await shown(driver())).toEqual([`0 ${ONE} well`, `1 ${OTHER} well`]);
});

it('without any GPU that answers, an enrolled host starts and says why, and an enrollment is refused', async () => {
  writeFileSync(join(rig.bin, 'nvidia-smi'), '#!/bin/sh\necho "NVIDIA-SMI has failed"\nexit 9\n');
  await expect(driver({ mustAnswer: true }).inventory()).rejects.toMatchObject({
    code: 'SETUP',
    message: expect.stringContaining('cannot be read (NVIDIA-SMI has failed); install the driver') as string,
  });
  expect(await driver().inventory()).toEqual({ gpus: [], driverVersion: '', cudaVersion: '' });
  list([ONE]);
  expect((await driver().inventory()).gpus).toMatchObject([
    { uuid: ONE, healthy: false, reason: 'NVIDIA-SMI has failed' },
  ]);
  writeFileSync(
    join(rig.bin, 'nvidia-smi'),
    `#!/bin/sh\necho '<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>'\n`,
  );
  await expect(driver({ mustAnswer: true }).inventory()).rejects.toThrow(/lists no GPU/);
});

it.each(['', 'null', '{}', '{"gpus":{}}', '{"gpus":[{"uuid":1}]}', '[', '{"gpus":[null]}'])(
  'a state file that holds "%s" is as good as none',
  async (text) => {
    const file = join(rig.folder, 'gpus.json');
    writeFileSync(file, text);
    expect(await new GpuStateFile(file, null).read()).toBeUndefined();
  },
);

it('a GPU without memory of its own gets three quarters of the machine’s, and instances the rest', async () => {
  const total = Math.floor(totalmem() / MIB);
  const report = (model: string) =>
    `<product_name>${model}</product_name><fb_memory_usage><total>N/A</total></fb_memory_usage>`;
  const smi = (...models: string[]) => {
    const gpus = models.map((model, index) => `<gpu><uuid>${[ONE, OTHER][index]}</uuid>${report(model)}</gpu>`);
    writeFileSync(join(rig.bin, 'nvidia-smi'), `#!/bin/sh\necho '<nvidia_smi_log>${gpus.join('')}</nvidia_smi_log>'\n`);
  };
  const config = parseConfig({ GPURENT_AGENT_GPUS: 'nvidia', GPURENT_AGENT_NAME: 'host' });
  const read = () => readInventory(config, driver() as never, { root: '/', hasDiskQuota: true, runsVms: false });
  smi('NVIDIA GB10');
  const alone = await read();
  expect(alone.gpus).toMatchObject([{ healthy: true, memoryMb: Math.floor((totalmem() * 0.75) / MIB) }]);
  expect(alone.memoryMb + (alone.gpus[0]?.memoryMb ?? 0)).toBe(total);
  // Two share it; another card without a size is not offered and takes none.
  smi('NVIDIA GB10', 'NVIDIA GB10');
  const two = await read();
  expect(two.memoryMb + two.gpus.reduce((sum, { memoryMb }) => sum + memoryMb, 0)).toBeLessThanOrEqual(total);
  smi('NVIDIA GB10', 'NVIDIA H100');
  expect((await read()).gpus).toMatchObject([
    { healthy: true },
    { healthy: false, memoryMb: 0, reason: 'nvidia-smi shows no size of its memory: "N/A"' },
  ]);
});

it('what the driver asked for is no fault any more once it asks for nothing', async () => {
  const gpus = driver();
  const log = (change: string) => `NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from ${change}\n`;
  const lines = [log('0x0 (None) to 0x2 (Node Reboot Required)'), log('0x2 (Node Reboot Required) to 0x0 (None)')];
  rig.logKernel(lines[0] ?? '');
  expect((await gpus.inventory()).gpus[0]?.reason).toMatch(/Xid 154 .*Node Reboot Required/);
  rig.logKernel(lines.join(''));
  expect(await shown(gpus)).toContain(`0 ${ONE} well`);
});

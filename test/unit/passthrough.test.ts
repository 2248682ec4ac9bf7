import { afterEach, describe, expect, it } from 'vitest';
import { planPassthrough, returnSteps, takeSteps } from '../../agent/domain/passthrough.js';
import { PciTree } from '../rig/pci-tree.js';

const trees: PciTree[] = [];
afterEach(() => {
  for (const tree of trees.splice(0)) tree.remove();
});

function devicesOf(machine: string) {
  const tree = PciTree.of(machine);
  trees.push(tree);
  return tree.list();
}

describe('GPUs of real machines go to a virtual machine', () => {
  it.each([
    ['x570-gtx-1080-ti-gt-710', ['0000:0b:00'], [30], ['0000:0b:00.0', '0000:0b:00.1']],
    ['server-four-rtx-a5000', ['0000:31:00', '0000:ca:00'], [7, 19], 4],
    ['server-rtx-a5000-behind-switches', ['0000:52:00'], [49], ['0000:52:00.0', '0000:52:00.1']],
    // Its group holds the bridge above it, too.
    ['thinkpad-p53-quadro-rtx-4000', ['0000:01:00'], [2], 4],
    ['comet-lake-gtx-1660-super', ['0000:01:00'], [1], 4],
    ['amd-400-series-gt-720-rtx-2080-ti', ['0000:07:00'], [16], 4],
    ['amd-server-six-tesla-v100', ['0000:44:00'], [32], ['0000:44:00.0']],
    // What is in one group goes together.
    ['amd-server-six-tesla-v100', ['0000:27:00', '0000:28:00'], [19], 2],
    ['z370-rtx-2080-ti-rtx-2060', ['0000:01:00', '0000:02:00'], [1], 8],
  ])('%s %s', async (machine, slots, groups, functions) => {
    const plan = planPassthrough(await devicesOf(machine), slots);
    expect(plan).toMatchObject({ groups });
    const { addresses } = plan as { addresses: string[] };
    if (typeof functions === 'number') expect(addresses).toHaveLength(functions);
    else expect(addresses).toEqual(functions);
    for (const address of addresses) expect(slots.some((slot) => address.startsWith(slot))).toBe(true);
  });
});

describe('GPUs of real machines do not, with a reason', () => {
  it.each([
    ['z370-rtx-2080-ti-rtx-2060', '0000:01:00', /0000:02:00.0 \(another GPU\) is in IOMMU group 1/],
    ['amd-server-six-tesla-v100', '0000:c3:00', /0000:c4:00.0 \(another GPU\) is in IOMMU group 87/],
    ['amd-400-series-gt-720-rtx-2080-ti', '0000:06:00', /is in IOMMU group 15 together with 0000:06:00/],
    ['coffee-lake-rtx-3060-ti-with-fpga', '0000:02:00', /0000:01:00.0 \(another device\) is in IOMMU group 1/],
    ['hgx-h100-nvswitch', '0000:41:00', /joined by NVSwitch/],
    ['hgx-h200-nvswitch-one-group', '0000:18:00', /joined by NVSwitch/],
    ['cloud-vm-a100-nvswitch-no-iommu', '0001:00:00', /joined by NVSwitch/],
    ['msi-b450-gtx-1080-ti-iommu-off', '0000:29:00', /0000:29:00.0 is in no IOMMU group: switch VT-d or AMD-Vi on/],
    ['server-two-rtx-3090-iommu-off', '0000:81:00', /is in no IOMMU group/],
    ['x570-gtx-1080-ti-gt-710', '0000:7f:00', /the GPU at 0000:7f:00 is not there/],
  ])('%s %s', async (machine, slot, reason) => {
    expect(planPassthrough(await devicesOf(machine), [slot])).toMatch(reason);
  });
});

it('functions are taken from their drivers one after the other, and what is taken is left', async () => {
  const devices = await devicesOf('x570-gtx-1080-ti-gt-710');
  const gpu = devices.filter(({ address }) => address.startsWith('0000:0b:00'));
  expect(takeSteps(gpu)).toEqual([
    { file: 'devices/0000:0b:00.0/driver_override', text: 'vfio-pci' },
    { file: 'devices/0000:0b:00.0/driver/unbind', text: '0000:0b:00.0' },
    { file: 'drivers_probe', text: '0000:0b:00.0' },
    { file: 'devices/0000:0b:00.1/driver_override', text: 'vfio-pci' },
    { file: 'devices/0000:0b:00.1/driver/unbind', text: '0000:0b:00.1' },
    { file: 'drivers_probe', text: '0000:0b:00.1' },
  ]);
  const taken = gpu.map((each) => ({ ...each, driver: 'vfio-pci' }));
  expect(takeSteps(taken)).toEqual([]);
  expect(returnSteps(gpu)).toEqual([]);
  expect(returnSteps(taken.slice(0, 1).map((each) => ({ ...each, driver: null })))).toEqual([
    { file: 'devices/0000:0b:00.0/driver_override', text: '\n' },
    { file: 'drivers_probe', text: '0000:0b:00.0' },
  ]);
  expect(returnSteps(taken).map(({ file }) => file)).toEqual([
    'devices/0000:0b:00.0/driver_override',
    'devices/0000:0b:00.0/driver/unbind',
    'drivers_probe',
    'devices/0000:0b:00.1/driver_override',
    'devices/0000:0b:00.1/driver/unbind',
    'drivers_probe',
  ]);
});

import { afterEach, describe, expect, it } from 'vitest';
import { planPassthrough, returnSteps, slotOf, takeSteps, type PciFunction } from '../../agent/domain/passthrough.js';
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

describe('GPUs of a made-up machine', () => {
  const OTHERS = 0x1022;
  const device = (address: string, code: number, group: number | null, vendor = OTHERS): PciFunction => ({
    address,
    class: code,
    vendor,
    group,
    driver: null,
  });
  const gpu = (slot: string, group: number | null) => device(`${slot}.0`, 0x030000, group, 0x10de);

  it('go in the order of their groups, which are numbers', () => {
    const all = [gpu('0000:01:00', 20), gpu('0000:02:00', 3), gpu('0000:03:00', 100)];
    const plan = planPassthrough(all, ['0000:03:00', '0000:01:00', '0000:02:00']);
    expect(plan).toMatchObject({ groups: [3, 20, 100] });
  });

  it('do not go where one of them is not there', () => {
    const all = [gpu('0000:01:00', 1)];
    expect(planPassthrough(all, ['0000:01:00', '0000:02:00'])).toBe('the GPU at 0000:02:00 is not there');
  });

  it('go where something else is joined by a bridge of another vendor, unless that is in their group', () => {
    const bridge = (group: number) => device('0000:09:00.0', 0x068000, group);
    expect(planPassthrough([gpu('0000:01:00', 1), bridge(2)], ['0000:01:00'])).toMatchObject({ groups: [1] });
    expect(planPassthrough([gpu('0000:01:00', 1), bridge(1)], ['0000:01:00'])).toMatch(
      /0000:09:00.0 \(another device\)/,
    );
    const carrier = device('0000:00:01.0', 0x060400, 1);
    expect(planPassthrough([gpu('0000:01:00', 1), carrier], ['0000:01:00'])).toMatchObject({ groups: [1] });
  });

  it.each([
    [0x010802, 'a disk controller'],
    [0x020000, 'a network card'],
    [0x030000, 'another GPU'],
    [0x040300, 'a sound card'],
    [0x0c0330, 'a USB or serial controller'],
    [0x120000, 'another device'],
  ])('do not go with what is of the class %i: %s', (code, name) => {
    const all = [gpu('0000:01:00', 1), gpu('0000:02:00', 1), device('0000:05:00.3', code, 1)];
    expect(planPassthrough(all, ['0000:01:00', '0000:02:00'])).toBe(
      `0000:05:00.3 (${name}) is in IOMMU group 1 together with 0000:01:00, 0000:02:00, and would be within the guest's reach: use another slot`,
    );
  });

  it('have all functions of a slot in common', () => {
    expect(['0000:3b:00.0', '0000:3b:00.7', '0000:3b:00'].map(slotOf)).toEqual(Array(3).fill('0000:3b:00'));
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

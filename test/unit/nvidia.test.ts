import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseReport } from '../../agent/host/nvidia/report.js';
import { USE_QUERY, parseUse } from '../../agent/host/nvidia/use.js';
import { isWithdrawal, parseXids } from '../../agent/host/nvidia/xid.js';
import { NvidiaGpus } from '../../agent/host/nvidia/nvidia.js';
import { ManualClock } from '../harness/manual-clock.js';

const FIXTURES = new URL('../fixtures/nvidia-smi/', import.meta.url);
const read = (name: string) => parseReport(readFileSync(new URL(name, FIXTURES), 'utf8'));

describe('what nvidia-smi reports', () => {
  it('of drivers up to 11.x names errors by their bits', () => {
    const { driverVersion, cudaVersion, gpus } = read('driver-470-v11.xml');
    expect({ driverVersion, cudaVersion }).toEqual({ driverVersion: '470.103.01', cudaVersion: '11.4' });
    expect(gpus).toEqual([
      {
        uuid: 'GPU-0c2d8e5f-70b1-4f4e-9b36-6a4d7a1e0001',
        model: 'Tesla V100-SXM2-32GB',
        memoryMb: 32_510,
        usesMachineMemory: false,
        pciAddress: '0000:06:00',
        faults: [],
        processes: [],
        isKeptAwake: false,
      },
      {
        uuid: 'GPU-0c2d8e5f-70b1-4f4e-9b36-6a4d7a1e0002',
        model: 'Tesla V100-SXM2-32GB',
        memoryMb: 32_510,
        usesMachineMemory: false,
        pciAddress: '0000:07:00',
        faults: [
          '2 uncorrected memory errors since the driver was loaded',
          'a memory page waits for a reset of the GPU',
        ],
        processes: [],
        isKeptAwake: false,
      },
    ]);
  });

  it('of 12.x tells of MIG, resets, remapped rows and what computes', () => {
    const { cudaVersion, gpus } = read('driver-535-v12.xml');
    expect(cudaVersion).toBe('12.2');
    expect(gpus.map(({ faults }) => faults)).toEqual([
      ['it is divided by MIG; only whole GPUs are rented'],
      [
        '3 uncorrected memory errors since the driver was loaded',
        'a memory row waits for a reset of the GPU',
        'it needs a reset',
      ],
      [],
    ]);
    expect(gpus.map(({ memoryMb }) => memoryMb)).toEqual([81_920, 81_920, 81_920]);
    expect(gpus[2]?.processes).toEqual([
      { pid: 4021, name: 'python & friends' },
      { pid: 4022, name: 'nvidia-cuda-mps-server' },
    ]);
  });

  it('of 13.x tells how it wants to be recovered', () => {
    const { cudaVersion, gpus } = read('driver-590-v13.xml');
    expect(cudaVersion).toBe('13.1');
    expect(gpus.map(({ faults }) => faults)).toEqual([
      [],
      [
        '3 uncorrected memory errors since the driver was loaded',
        'its memory has no spare rows left',
        'its driver asks for: Drain and Reset',
      ],
    ]);
    expect(gpus[1]?.pciAddress).toBe('00010000:0a:00');
    expect(gpus.map(({ isKeptAwake }) => isKeptAwake)).toEqual([true, false]);
  });

  it('is not taken for something else', () => {
    expect(() => parseReport('No devices were found\n')).toThrow(/No devices were found/);
    expect(() => parseReport('<nvidia_smi_log><gpu><uuid>1</uuid></gpu></nvidia_smi_log>')).toThrow(/names a GPU "1"/);
    expect(read('driver-470-v11.xml').gpus).toHaveLength(2);
    expect(parseReport('<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>').gpus).toEqual([]);
  });
});

/** What nvidia-smi prints in place of a value: by cards that do not have it, and by cards that do not work. */
const ABSENT = ['N/A', '[N/A]', 'Not Supported', '[Not Supported]', ''];
const BROKEN = [
  'Unknown Error',
  '[Unknown Error]',
  'ERR!',
  'GPU requires reset',
  '[GPU requires reset]',
  'GPU is lost',
];

describe('an odd value', () => {
  const UUID = 'GPU-b7e4d2a1-3c5f-4e88-9a0b-1d2e3f4a0001';
  const COLUMNS = {
    product_name: 'NVIDIA H100 80GB HBM3',
    'fb_memory_usage.total': '81559 MiB',
    'pci.pci_bus_id': '00000000:61:00.0',
    'ecc_errors.volatile.dram_uncorrectable': '0',
    'remapped_rows.remapped_row_failure': 'No',
    'retired_pages.pending_retirement': 'No',
    'mig_mode.current_mig': 'Disabled',
    'gpu_reset_status.reset_required': 'No',
    compute_mode: 'Default',
    gpu_recovery_action: 'None',
    'fabric.state': 'Completed',
    'fabric.status': 'Success',
    persistence_mode: 'Enabled',
  };
  const gpuWith = (odd: Partial<Record<keyof typeof COLUMNS, string>>) => {
    const elements = Object.entries({ ...COLUMNS, ...odd }).map(([path, value]) => {
      const names = path.split('.');
      return `<${names.join('><')}>${value}</${names.reverse().join('></')}>`;
    });
    const text = elements.join('').replace('</fabric><fabric>', '');
    return parseReport(`<nvidia_smi_log><gpu><uuid>${UUID}</uuid>${text}</gpu></nvidia_smi_log>`).gpus[0];
  };

  it('is none where a card is well', () => expect(gpuWith({})?.faults).toEqual([]));

  // A card without a name or without memory is never offered; what else it does not have is no fault.
  const needed = ['product_name', 'fb_memory_usage.total'];
  const ignored = ['pci.pci_bus_id', 'persistence_mode'];
  const columns = Object.keys(COLUMNS) as (keyof typeof COLUMNS)[];
  it.each(columns.flatMap((column) => ABSENT.map((value) => [column, value] as const)))(
    'of %s: "%s", as of a card that does not have it',
    (column, value) => {
      const gpu = gpuWith({ [column]: value });
      expect(gpu?.faults.length === 0).toBe(!needed.includes(column));
      expect(gpu?.memoryMb).toBe(column === 'fb_memory_usage.total' ? 0 : 81_559);
    },
  );
  it.each(columns.flatMap((column) => BROKEN.map((value) => [column, value] as const)))(
    'of %s: "%s", as of a card that does not work',
    (column, value) => {
      expect(gpuWith({ [column]: value })?.faults.length === 0).toBe(ignored.includes(column));
    },
  );

  it.each([...ABSENT, ...BROKEN])('in place of a UUID, "%s", is no GPU', (value) => {
    expect(() => parseReport(`<nvidia_smi_log><gpu><uuid>${value}</uuid></gpu></nvidia_smi_log>`)).toThrow(/not a GPU/);
  });

  it.each(
    USE_QUERY.slice(1).flatMap((column, at) => [...ABSENT, ...BROKEN].map((value) => [column, value, at] as const)),
  )('of a measured %s, "%s", is not known', (_, value, at) => {
    const fields = ['17', '100', '81559', '300.4', '41'].map((field, index) => (index === at ? value : field));
    const reading = Object.values(parseUse(`${UUID}, ${fields.join(', ')}\n`).get(UUID) ?? {});
    expect(reading.map((each, index) => (each === null) === (index === at))).toEqual(fields.map(() => true));
  });

  it.each(['NVIDIA GB10', 'NVIDIA GH200 480GB', 'Orin (nvgpu)', 'NVIDIA Thor', 'Xavier'])(
    'of the memory of %s, which has none of its own, means the machine’s',
    (model) => {
      for (const value of ABSENT) {
        const gpu = gpuWith({ product_name: model, 'fb_memory_usage.total': value });
        expect(gpu).toMatchObject({ usesMachineMemory: true, faults: [] });
      }
      for (const value of BROKEN) {
        const gpu = gpuWith({ product_name: model, 'fb_memory_usage.total': value });
        expect(gpu).toMatchObject({ usesMachineMemory: false });
        expect(gpu?.faults).not.toEqual([]);
      }
    },
  );

  it('of the NVLink fabric says that CUDA cannot start yet', () => {
    expect(gpuWith({ 'fabric.state': 'In Progress', 'fabric.status': 'N/A' })?.faults).toEqual([
      'the state of its NVLink fabric is "In Progress"; see "systemctl status nvidia-fabricmanager"',
    ]);
    expect(gpuWith({ 'fabric.status': 'Failure' })?.faults).toEqual([
      expect.stringContaining('the status of its NVLink fabric is "Failure"'),
    ]);
  });
});

describe('the kernel’s log', () => {
  it('names the GPUs that are broken, not those whose program was', () => {
    const log = [
      '[12.345] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.54.03',
      '[99.1] NVRM: Xid (PCI:0000:3b:00): 31, pid=4021, name=python, Ch 00000008, intr 00000000. MMU Fault',
      '[99.2] NVRM: Xid (PCI:0000:AF:00): 79, pid=77, GPU has fallen off the bus.',
      '<4>[99.3] NVRM: Xid (0000:18:00): 48, An uncorrectable double bit error (DBE) has been detected',
    ].join('\n');
    expect(parseXids(log)).toEqual([
      { pciAddress: '0000:af:00', number: 79, text: 'pid=77, GPU has fallen off the bus.' },
      { pciAddress: '0000:18:00', number: 48, text: 'An uncorrectable double bit error (DBE) has been detected' },
    ]);
    expect(parseXids('')).toEqual([]);
    const actions = [
      'NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)',
      'NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)',
    ];
    expect(parseXids(actions.join('\n')).map(isWithdrawal)).toEqual([false, true]);
  });
});

describe('GPUs are attached', () => {
  const uuids = ['GPU-a', 'GPU-b'];

  it('by UUID, over whatever an image asks for', () => {
    const { env, deviceRequests } = new NvidiaGpus(new ManualClock()).attachment(uuids);
    expect(env).toEqual(
      expect.arrayContaining(['NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b', 'NVIDIA_MIG_CONFIG_DEVICES=', 'NVIDIA_GDS=']),
    );
    expect(deviceRequests).toMatchObject([{ Driver: 'nvidia', DeviceIDs: uuids }]);
  });

  it('by CDI, where the host’s owner wants that', () => {
    const { env, deviceRequests } = new NvidiaGpus(new ManualClock(), 'cdi').attachment(uuids);
    expect(env).toContain('NVIDIA_VISIBLE_DEVICES=void');
    expect(deviceRequests).toEqual([{ Driver: 'cdi', DeviceIDs: ['nvidia.com/gpu=GPU-a', 'nvidia.com/gpu=GPU-b'] }]);
  });
});

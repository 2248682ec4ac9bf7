import { describe, expect, it } from 'vitest';
import { parseCudaVersion, parseGpuList } from '../../agent/domain/nvidia-smi.js';
import { candidatePorts } from '../../agent/domain/ports.js';
import { retryDelayMs } from '../../agent/link/backoff.js';
import { containerOptions } from '../../agent/runtime/docker/container-options.js';
import { imageDefaults } from '../../agent/runtime/docker/images.js';
import { LineReader } from '../../agent/runtime/docker/log-lines.js';
import { specOf } from '../suites/runtime-suite.js';

describe('nvidia-smi', () => {
  it('lists GPUs', () => {
    const output = [
      'GPU-5f1d0c5e-2b9a-4c57-9f52-3f1f8c1f9b10, 0, NVIDIA H100 80GB HBM3, 81559, 550.54.15, 0',
      'GPU-8a6c0f3d-61d2-4a51-8d70-0c9a1a2b3c4d, 1, NVIDIA GeForce RTX 4090, 24564, 550.54.15, [N/A]',
      '',
    ].join('\n');
    expect(parseGpuList(output)).toEqual([
      {
        uuid: 'GPU-5f1d0c5e-2b9a-4c57-9f52-3f1f8c1f9b10',
        index: 0,
        model: 'NVIDIA H100 80GB HBM3',
        memoryMb: 81_559,
        driverVersion: '550.54.15',
        uncorrectedEccErrors: 0,
      },
      {
        uuid: 'GPU-8a6c0f3d-61d2-4a51-8d70-0c9a1a2b3c4d',
        index: 1,
        model: 'NVIDIA GeForce RTX 4090',
        memoryMb: 24_564,
        driverVersion: '550.54.15',
        uncorrectedEccErrors: null,
      },
    ]);
  });

  it('says nothing that is not understood', () => {
    expect(() => parseGpuList('No devices were found')).toThrow(/No devices were found/);
    expect(parseGpuList('\n')).toEqual([]);
  });

  it('names the CUDA version in its heading', () => {
    expect(parseCudaVersion('| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |')).toBe(
      '12.4',
    );
    expect(parseCudaVersion('| NVIDIA-SMI 470.1  |')).toBe('');
  });
});

describe('ports', () => {
  it('come once each, from the offset on, less the used ones', () => {
    expect(candidatePorts({ first: 10, last: 14 }, new Set([12]), 1)).toEqual([11, 13, 14, 10]);
    expect(candidatePorts({ first: 10, last: 10 }, new Set([10]), 7)).toEqual([]);
  });
});

describe('lines of a log', () => {
  const frame = (text: string, stream = 1) => {
    const body = Buffer.from(text);
    const header = Buffer.alloc(8);
    header[0] = stream;
    header.writeUInt32BE(body.length, 4);
    return Buffer.concat([header, body]);
  };

  it('are whole however the bytes are cut', () => {
    const bytes = Buffer.concat([frame('T1 höher\n'), frame('T2 \n', 2), frame('T3 a b\r\n')]);
    for (let size = 1; size <= bytes.length; size++) {
      const reader = new LineReader();
      const lines = [];
      for (let at = 0; at < bytes.length; at += size) lines.push(...reader.push(bytes.subarray(at, at + size)));
      expect(lines).toEqual([
        { at: 'T1', text: 'höher' },
        { at: 'T2', text: '' },
        { at: 'T3', text: 'a b' },
      ]);
    }
  });

  it('that Docker has split are joined, and cut where they are too long', () => {
    const reader = new LineReader();
    expect(reader.push(frame('T1 first '))).toEqual([]);
    expect(reader.push(frame('T9 other\n', 2))).toEqual([{ at: 'T9', text: 'other' }]);
    expect(reader.push(frame('T2 second\n'))).toEqual([{ at: 'T1', text: 'first second' }]);
    for (let i = 0; i < 10; i++) reader.push(frame(`T ${'x'.repeat(16_000)}`));
    expect(reader.push(frame('T \n'))[0]?.text).toHaveLength(16_384);
  });
});

describe('a container', () => {
  const placement = {
    hostId: 'host',
    instanceId: '12345678-0000',
    sequence: 1,
    guestTools: '/tools',
    bindAddress: '0.0.0.0',
    sshPort: 40_000,
    openFiles: 1024,
    gpuAttachment: { env: ['NVIDIA_VISIBLE_DEVICES=GPU-1'], deviceRequests: [] },
  };
  const image = { entrypoint: ['/entry'], command: ['run'], user: 'app:app', stopSignal: 'SIGQUIT', setsHome: false };

  it('takes nothing but values from what is sent', () => {
    const env = [
      { key: 'GPURENT_RUN_AS', value: 'root' },
      { key: 'NVIDIA_VISIBLE_DEVICES', value: 'all' },
      { key: 'MINE', value: 'x' },
    ];
    const options = containerOptions(specOf('image:1', { env }), image, placement);
    expect(options.Env).toContain('MINE=x');
    expect(options.Env?.filter((entry) => entry.startsWith('NVIDIA_'))).toEqual(['NVIDIA_VISIBLE_DEVICES=GPU-1']);
    expect(options.Env?.filter((entry) => entry.startsWith('GPURENT_RUN_AS'))).toEqual(['GPURENT_RUN_AS=app:app']);
    expect(options.HostConfig?.Mounts).toHaveLength(1);
  });

  it('runs the template’s command, or what the image says', () => {
    expect(containerOptions(specOf('image:1'), image, placement).Cmd).toEqual(['/entry', 'run']);
    expect(containerOptions(specOf('image:1', { command: ['mine'] }), image, placement).Cmd).toEqual(['mine']);
  });
});

describe('an image', () => {
  it('that says nothing, or null, has no defaults', () => {
    const nothing = { entrypoint: [], command: [], user: '', stopSignal: '', setsHome: false };
    expect(imageDefaults({})).toEqual(nothing);
    expect(imageDefaults({ Entrypoint: null, Cmd: null, User: null, Env: null })).toEqual(nothing);
  });

  it('runs what it says', () => {
    expect(imageDefaults({ Entrypoint: null, Cmd: ['bash'], User: '1000', Env: ['HOME=/data'] })).toEqual({
      entrypoint: [],
      command: ['bash'],
      user: '1000',
      stopSignal: '',
      setsHome: true,
    });
  });
});

it('a host dials again ever more slowly, at most every ten seconds', () => {
  expect(retryDelayMs(0, 0)).toBe(250);
  expect(retryDelayMs(0, 0.999)).toBeLessThanOrEqual(500);
  expect(retryDelayMs(50, 0.999)).toBeLessThanOrEqual(10_000);
});

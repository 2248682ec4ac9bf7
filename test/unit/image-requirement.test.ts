import { describe, expect, it } from 'vitest';
import { requirementsOf } from '../../agent/domain/nvidia-requirement.js';
import {
  agreedRequirements,
  digestOn,
  driverFit,
  wordsOfUnmet,
  type MachineDriver,
  type PulledDigest,
} from '../../control-plane/domain/catalogue/image-requirement.js';

const A100: MachineDriver = { driver_version: '535.183.01', cuda_version: '12.2', gpu_model: 'NVIDIA A100-SXM4-80GB' };
const OLD: MachineDriver = { driver_version: '470.82.01', cuda_version: '11.4', gpu_model: 'NVIDIA A100-SXM4-80GB' };
const GEFORCE: MachineDriver = { ...OLD, gpu_model: 'NVIDIA GeForce RTX 3090' };
const TESLA: MachineDriver = { ...OLD, gpu_model: 'Tesla T4' };

/** What images of CUDA say: older drivers are good for some brands of GPUs. */
const compatible = (brands: string, drivers: number[]) =>
  drivers.flatMap((driver) =>
    brands.split(' ').map((brand) => `brand=${brand},driver>=${driver},driver<${driver + 1}`),
  );
const CUDA_11_8 = ['cuda>=11.8', ...compatible('tesla unknown nvidia nvidiartx geforce quadro titan', [470])].join(' ');
const CUDA_12_4 = ['cuda>=12.4', ...compatible('tesla unknown nvidia nvidiartx geforce geforcertx', [470, 525])].join(
  ' ',
);
const CUDA_12_8 = ['cuda>=12.8', ...compatible('unknown grid tesla nvidia quadro vws', [470, 535, 550])].join(' ');
const leastOf = (version: string, of: 'cuda' | 'driver' = 'cuda') => ({ least: { of, version } });

describe('what an image requires of the driver', () => {
  it.each<[string, MachineDriver, ReturnType<typeof driverFit>]>([
    ['', A100, 'fits'],
    ['cuda>=12.2', A100, 'fits'],
    ['cuda>=9.0', A100, 'fits'],
    ['cuda>=12.4', A100, leastOf('12.4')],
    ['cuda>=12.10', A100, leastOf('12.10')],
    [CUDA_11_8, A100, 'fits'],
    [CUDA_12_4, A100, leastOf('12.4')],
    [CUDA_12_8, A100, 'unknown'],
    [CUDA_12_8, { ...A100, driver_version: '545.23' }, leastOf('12.8')],
    [
      CUDA_12_8,
      { driver_version: '550.54.14', cuda_version: '12.4', gpu_model: 'NVIDIA GeForce RTX 4090' },
      leastOf('12.8'),
    ],
    // The driver has a brand for each GPU; it is known here only where the name of the GPU says it.
    [CUDA_11_8, OLD, 'unknown'],
    [CUDA_11_8, TESLA, 'fits'],
    [CUDA_11_8, GEFORCE, 'unknown'],
    ['cuda>=12.4 brand=tesla,driver>=470,driver<471', GEFORCE, leastOf('12.4')],
    ['brand!=geforce,cuda>=11', GEFORCE, 'unknown'],
    ['brand!=tesla', TESLA, { least: null }],
    ['brand=tesla,brand=quadro', TESLA, 'fits'],
    ['cuda>=13.0 cuda>=12.6', A100, leastOf('12.6')],
    ['cuda>=12.0,cuda<12.1', A100, { least: null }],
    ['driver>=550', A100, leastOf('550', 'driver')],
    ['cuda>=12.0,driver>=550.54.14', A100, leastOf('550.54.14', 'driver')],
    ['driver>=535,driver<536', A100, 'fits'],
    ['driver>=535.183.01', A100, 'fits'],
    ['driver>=535.183.2', A100, leastOf('535.183.2', 'driver')],
    ['cuda=12.2', A100, 'fits'],
    ['cuda=12.1,cuda=12.2', A100, 'fits'],
    ['cuda!=12.2', A100, { least: null }],
    ['cuda<=12.2', A100, 'fits'],
    ['cuda>12.2', A100, { least: null }],
    ['cuda<12', A100, { least: null }],
    // Where tools could read a version in two ways, nobody is warned.
    ['cuda>=12.2.1', A100, 'unknown'],
    ['driver=535', A100, 'unknown'],
    ['driver<=535', A100, 'unknown'],
    ['cuda>=12.2.0', A100, 'fits'],
    ['arch>=9.0', A100, 'unknown'],
    ['cuda>=12.4 arch>=9.0', A100, 'unknown'],
    ['cuda>=12.4,arch>=9.0', A100, leastOf('12.4')],
    ['csv-mounts=all', A100, 'unknown'],
    ['cuda>=12.4 whatever', A100, 'unknown'],
    ['cuda>=12.x', A100, 'unknown'],
    ['cuda=>12.4', A100, 'unknown'],
    ['cuda ~> 12', A100, 'unknown'],
    ['cuda>=12.4', { ...A100, cuda_version: null }, 'unknown'],
    ['driver>=550', { ...A100, driver_version: null }, 'unknown'],
    ['brand=tesla', { ...A100, gpu_model: null }, 'unknown'],
    ['cuda>=12.4', { ...A100, cuda_version: 'N/A' }, 'unknown'],
    [',, ,', A100, 'fits'],
    ['a'.repeat(4_096), A100, 'unknown'],
  ])('%s', (requirement, machine, fit) => {
    expect(driverFit([requirement], machine)).toEqual(fit);
  });

  it('must all hold', () => {
    expect(driverFit([], A100)).toBe('fits');
    expect(driverFit(['cuda>=12.0', 'driver>=550'], A100)).toEqual(leastOf('550', 'driver'));
    expect(driverFit(['cuda>=12.0', 'arch>=9.0'], A100)).toBe('unknown');
    expect(driverFit(['arch>=9.0', 'cuda>=12.4'], A100)).toEqual(leastOf('12.4'));
  });

  it.each([
    ['cuda>=12.4', 'requires CUDA 12.4 or newer, but the driver of the machine supports only up to 12.2: the start'],
    ['driver>=550', 'requires NVIDIA driver 550 or newer, but the machine has 535.183.01: the start'],
    ['cuda<12', 'requires another NVIDIA driver than the 535.183.01 of the machine: the start'],
  ])('is said in words: %s', (requirement, words) => {
    const fit = driverFit([requirement], A100);
    expect(typeof fit === 'object' && wordsOfUnmet(fit, A100)).toContain(words);
  });

  it('is what all machines say of it', () => {
    expect(agreedRequirements([])).toEqual([]);
    expect(agreedRequirements([''])).toEqual([]);
    expect(agreedRequirements(['cuda>=12.4\ndriver>=550', 'cuda>=12.4\ndriver>=550'])).toEqual([
      'cuda>=12.4',
      'driver>=550',
    ]);
    expect(agreedRequirements(['cuda>=99', 'cuda>=12.4'])).toEqual([]);
  });
});

const pulled = (machine_id: string, digest: string, told_at: number): PulledDigest => ({ machine_id, digest, told_at });

it.each<[string, PulledDigest[], string | undefined]>([
  ['nothing that nobody has pulled', [], undefined],
  ['what another machine has pulled, if it is the only one', [pulled('a', 'old', 1)], 'old'],
  ['no single machine against another one', [pulled('a', 'old', 1), pulled('b', 'lie', 2)], 'old'],
  ['two that agree', [pulled('a', 'old', 1), pulled('b', 'new', 2), pulled('c', 'new', 3)], 'new'],
  ['what it has pulled last itself', [pulled('a', 'old', 1), pulled('b', 'old', 2), pulled('here', 'new', 3)], 'new'],
  ['two that agree later than itself', [pulled('here', 'old', 1), pulled('b', 'new', 2), pulled('c', 'new', 3)], 'new'],
  ['itself, where a single one was later', [pulled('here', 'old', 1), pulled('b', 'lie', 2)], 'old'],
  ['nothing from the future', [pulled('a', 'old', 1), pulled('here', 'new', 11)], 'old'],
])('a deploy on a machine believes, of a name, %s', (_, told, digest) => {
  expect(digestOn('here', told, 10)).toBe(digest);
});

describe('what the variables of an image require', () => {
  it.each<[string[], string[] | undefined]>([
    [['PATH=/bin', `NVIDIA_REQUIRE_CUDA=${CUDA_12_4}`], [CUDA_12_4]],
    [
      ['NVIDIA_REQUIRE_CUDA=cuda>=12.4', 'NVIDIA_REQUIRE_DRIVER=driver>=550'],
      ['cuda>=12.4', 'driver>=550'],
    ],
    [['NVIDIA_REQUIRE_JETPACK=csv-mounts=all', 'NVIDIA_VISIBLE_DEVICES=all'], []],
    [['NVIDIA_REQUIRE_CUDA=cuda>=12.4', 'NVIDIA_DISABLE_REQUIRE=1'], []],
    [['NVIDIA_REQUIRE_CUDA=cuda>=12.4', 'NVIDIA_DISABLE_REQUIRE=true'], []],
    [['NVIDIA_REQUIRE_CUDA=cuda>=12.4', 'NVIDIA_DISABLE_REQUIRE=0'], ['cuda>=12.4']],
    [[`NVIDIA_REQUIRE_CUDA=${'cuda>=12.4 '.repeat(400)}`], undefined],
    [Array.from({ length: 17 }, (_, index) => `NVIDIA_REQUIRE_${index}=cuda>=1`), undefined],
    [['NVIDIA_REQUIRE_CUDA=cuda>=12.4\n'], undefined],
  ])('%s', (env, required) => {
    expect(requirementsOf(env)).toEqual(required);
  });
});

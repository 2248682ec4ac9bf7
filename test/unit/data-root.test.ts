import { expect, it } from 'vitest';
import {
  UNDO_SWITCH,
  UNKNOWN_DATA_ROOT,
  describeHidden,
  hiddenInstances,
  hostIds,
  isSameDataRoot,
  isSamePlace,
  type DataRoot,
} from '../../agent/domain/data-root.js';

const PLAIN: DataRoot = { path: '/var/lib/docker', storageDriver: 'overlay2', isRemapped: false, engineId: 'A' };
const REMAPPED: DataRoot = { ...PLAIN, path: '/var/lib/docker/100000.200000', isRemapped: true };

it.each([
  ['remaps user namespaces', REMAPPED],
  ['has another data root', { ...PLAIN, path: '/data/docker' }],
  ['has another storage driver', { ...PLAIN, storageDriver: 'btrfs' }],
  ['finds the folder of its data empty, for its disk is not mounted', { ...PLAIN, engineId: 'B' }],
])('what Docker does not show since it %s is hidden, and what it shows has moved along', (_, now) => {
  const madeIn = new Map([
    ['b', PLAIN],
    ['a', PLAIN],
    ['moved', PLAIN],
    ['newer', now],
  ]);
  expect(hiddenInstances(madeIn, now, new Set(['moved']))).toEqual(['a', 'b']);
});

it('nothing is the same as where user namespaces are remapped and were not', () => {
  expect(isSamePlace(PLAIN, { ...PLAIN, engineId: 'B' })).toBe(true);
  expect(isSamePlace(PLAIN, { ...PLAIN, isRemapped: true })).toBe(false);
  expect(isSameDataRoot(PLAIN, { ...PLAIN, isRemapped: true })).toBe(false);
});

it('what cannot be read stands for nothing', () => {
  expect(UNKNOWN_DATA_ROOT).toEqual({ path: '', storageDriver: '', isRemapped: false, engineId: '' });
  expect(UNDO_SWITCH).toMatch(/not lost: undo what was changed .*daemon\.json/);
});

it('what Docker does not show of its present data root is gone', () => {
  expect(hiddenInstances(new Map([['a', PLAIN]]), { ...PLAIN }, new Set())).toEqual([]);
});

it('an instance whose note cannot be read is taken for hidden', () => {
  expect(hiddenInstances(new Map([['a', UNKNOWN_DATA_ROOT]]), PLAIN, new Set())).toEqual(['a']);
});

it('a host’s owner reads where the instances are, and where Docker looks', () => {
  expect(describeHidden(['a'], PLAIN, REMAPPED)).toBe(
    'Docker keeps its containers in /var/lib/docker/100000.200000 (overlay2, user namespaces remapped) and does not show an instance that was made in /var/lib/docker (overlay2, user namespaces not remapped)',
  );
  expect(describeHidden(['a'], PLAIN, { ...PLAIN, engineId: 'B' })).toMatch(
    /another data root now, as where its disk is/,
  );
  expect(describeHidden(['a', 'b'], UNKNOWN_DATA_ROOT, PLAIN)).toMatch(
    /does not show 2 instances that were made in a folder that is not known any more$/,
  );
});

it('an account of the runner has the ids that its files were remapped to', () => {
  expect(hostIds(REMAPPED, 64_000)).toEqual({ uid: 164_000, gid: 264_000 });
  expect(hostIds(PLAIN, 64_000)).toEqual({ uid: 64_000, gid: 64_000 });
  expect(hostIds({ ...REMAPPED, path: `${REMAPPED.path}/` }, 1)).toEqual({ uid: 100_001, gid: 200_001 });
  // Folders that somebody has named so.
  expect(hostIds({ ...REMAPPED, path: '/data/1.2/docker' }, 64_000)).toEqual({ uid: 64_000, gid: 64_000 });
  expect(hostIds({ ...PLAIN, path: '/data/1.2' }, 64_000)).toEqual({ uid: 64_000, gid: 64_000 });
});

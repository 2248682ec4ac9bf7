import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import type { Engine } from '../../agent/runtime/docker/engine.js';
import { ImageCache } from '../../agent/runtime/docker/images/image-cache.js';
import { silentLogger } from '../../shared/logger.js';
import { ManualClock } from '../harness/manual-clock.js';

const MOST_NAMES = 32;

let folder: string;
let clock: ManualClock;
/** Images of Docker, by name. */
let names: Map<string, string>;
let freeShare: number;
let cache: ImageCache;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-cache-'));
  clock = new ManualClock();
  names = new Map();
  freeShare = 1;
  const image = (name: string) => ({ remove: async () => void names.delete(name) });
  const listed = () => [...new Set(names.values())].map((Id) => ({ Id, RepoTags: namesOf(Id), RepoDigests: null }));
  const docker = { getImage: image, listImages: async () => listed(), listContainers: async () => [] };
  const engine = { call: (_what: string, _ms: number, ask: (given: typeof docker) => unknown) => ask(docker) };
  const host = { file: join(folder, 'images.json'), freeShare: async () => freeShare };
  cache = new ImageCache(engine as unknown as Engine, clock, host, silentLogger);
});
afterEach(() => rmSync(folder, { recursive: true }));

const namesOf = (id: string) => [...names].filter(([, its]) => its === id).map(([name]) => name);
const noted = () => Object.keys(JSON.parse(readFileSync(join(folder, 'images.json'), 'utf8')) as object);
const collect = () => {
  clock.advance(2 * HOUR_MS);
  freeShare = 0.01;
  return cache.collect();
};

it.each(['name', 'plainName'] as const)(
  'an image that renters give ever more names (%s) goes with all of them',
  async (kind) => {
    for (let index = 0; index <= MOST_NAMES; index++) {
      const name = kind === 'name' ? `localhost/gpurent/pulled/docker.io/app:${index}` : `app:${index}`;
      names.set(name, 'a');
      await cache.fetched({ id: 'a', [kind]: name });
    }
    expect(namesOf('a')).toHaveLength(MOST_NAMES);
    expect(await collect()).toEqual(['a']);
    expect(names.size).toBe(0);
  },
);

it('takes no name from the image that has it now', async () => {
  const nameOf = (tag: string) => `localhost/gpurent/pulled/docker.io/app:${tag}`;
  await cache.fetched({ id: 'old', name: nameOf('latest') });
  names.set(nameOf('latest'), 'new');
  await cache.fetched({ id: 'new', name: nameOf('latest') });
  for (let index = 0; index < MOST_NAMES; index++) await cache.fetched({ id: 'old', name: nameOf(String(index)) });
  expect(namesOf('new')).toEqual([nameOf('latest')]);
});

it('keeps no note of what is not there any more', async () => {
  for (const id of ['gone', 'kept']) {
    names.set(`localhost/gpurent/pulled/docker.io/${id}:1`, id);
    await cache.fetched({ id, name: `localhost/gpurent/pulled/docker.io/${id}:1` });
  }
  names.delete('localhost/gpurent/pulled/docker.io/gone:1');
  names.set('owned:1', 'kept');
  await collect();
  expect(noted()).toEqual([]);
  expect(names).toEqual(new Map([['owned:1', 'kept']]));
});

import { readFileSync, readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import semver from 'semver';
import { VERSION } from '../../shared/version.js';
import { RELEASES } from '../harness/releases.js';
import { knownFailure } from '../../control-plane/domain/instances/command-failure.js';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

/** Beginnings of names; and what is for tests alone: another address than Stripe's own. */
const UNDOCUMENTED = ['GPURENT_AGENT', 'GPURENT_AGENT_TLS', 'GPURENT_TLS', 'GPURENT_STRIPE_API_URL'];

const settingsIn = (text: string) => new Set([...text.matchAll(/\bGPURENT_[A-Z_]*[A-Z]/g)].map(([name]) => name));

const payments = readdirSync(new URL('../../control-plane/payments', import.meta.url));

it.each<[string, number]>([
  ['control-plane/config.ts', 20],
  ['control-plane/mail/settings.ts', 5],
  ['control-plane/outbound/audit-settings.ts', 2],
  ['agent/config.ts', 30],
  ...payments.map((file): [string, number] => [`control-plane/payments/${file}`, -1]),
])('every setting that %s reads stands in a guide', (file, least) => {
  const guides = ['operator', 'day-two', 'host-owner'].map((name) => read(`docs/${name}.md`)).join('\n');
  const documented = settingsIn(guides);
  const settings = [...settingsIn(read(file))];
  expect(settings.length).toBeGreaterThan(least);
  expect(settings.filter((name) => !documented.has(name) && !UNDOCUMENTED.includes(name))).toEqual([]);
});

it('the guides name this release, or the next one', () => {
  const named = ['README.md', 'docs/operator.md', 'docs/host-owner.md'].flatMap((file) =>
    [...read(file).matchAll(/gpurent-(\d+\.\d+\.\d+)-linux/g)].map(([, version]) => version),
  );
  expect(new Set(named)).toEqual(new Set([semver.coerce(VERSION)?.version]));
});

it('every release of the changelog has left its fixture, and no other', () => {
  const released = [...read('CHANGELOG.md').matchAll(/^## (\d+\.\d+\.\d+)/gm)].map(([, version = '']) => version);
  expect(released.sort()).toEqual([...RELEASES].sort());
});

it('metrics know every code by which an agent says why a command has failed', () => {
  const [, union = ''] = /export type FailureCode =([^;]+);/.exec(read('agent/domain/failure.ts')) ?? [];
  const codes = [...union.matchAll(/'([A-Z_]+)'/g)].map(([, code = '']) => code);
  expect(codes.length).toBeGreaterThan(10);
  expect(codes.filter((code) => knownFailure(code) !== code)).toEqual([]);
});

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ACCESS_TOKEN_PLACEHOLDER } from '../../control-plane/domain/instances/environment.js';
import { HOST_EVENTS, INSTANCE_ERRORS, PLATFORM_EVENTS } from '../../control-plane/domain/instances/instance-codes.js';
import { ERRORS } from '../../control-plane/http/errors/error-codes.js';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');

/** The rows of the table under a heading: the text of each cell. */
function rowsUnder(heading: string): string[][] {
  const section =
    read('docs/codes.md')
      .split(/^## /m)
      .find((text) => text.startsWith(heading)) ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('| `'));
  return lines.map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}
const named = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '');
const codesUnder = (heading: string) => rowsUnder(heading).flatMap(([code]) => named(code));

it('every error of the API is documented, with its status, its meaning and what it adds', () => {
  const documented = rowsUnder('Errors').map(([code, status, when, adds]) => [
    named(code)[0],
    status,
    when,
    named(adds),
  ]);
  const known = Object.entries(ERRORS).map(([code, { status, meaning, extra = {} }]) => {
    return [code, String(status), meaning, Object.keys(extra)];
  });
  expect(documented).toEqual(known.sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)));
});

it('every error of an instance is documented, and no other', () => {
  expect(codesUnder('`error_code`')).toEqual([...INSTANCE_ERRORS]);
});

it('every kind of event is documented, also those that hosts tell', () => {
  expect(codesUnder('`kind`')).toEqual([...PLATFORM_EVENTS, ...HOST_EVENTS].sort());
});

it.each([
  'agent/runtime/docker/images/image-puller.ts',
  'agent/runtime/docker/images/images.ts',
  'agent/runtime/docker/vm/virtual-machines.ts',
])('the agent tells of no other kinds: %s', (file) => {
  const told = [...read(file).matchAll(/onProgress\('([^']+)'/g)].map(([, kind]) => kind);
  expect(told.length).toBeGreaterThan(0);
  for (const kind of told) expect(HOST_EVENTS).toContain(kind);
});

it('renters are told how the access token gets into a template', () => {
  expect(read('docs/renter.md')).toContain(ACCESS_TOKEN_PLACEHOLDER);
});

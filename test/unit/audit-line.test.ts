import { describe, expect, it } from 'vitest';
import {
  MOST_LINE_BYTES,
  auditLine,
  lostLine,
  oldestLines,
  type AuditFacts,
  type PlacedLine,
} from '../../control-plane/domain/audit-line.js';

const FACTS: AuditFacts = {
  source: 'audit',
  id: 'audit:1.2',
  at: '2026-01-01T00:00:00.000Z',
  actor: { kind: 'operator', id: 'u', email: 'o@example.com' },
  action: 'machine.notice',
  subject: 'm',
  details: {},
};

const read = (facts: Partial<AuditFacts>) => {
  const text = auditLine({ ...FACTS, ...facts });
  expect(Buffer.byteLength(`${text}\n`)).toBeLessThanOrEqual(MOST_LINE_BYTES);
  expect(text).toMatch(/^\{"source":"audit","id":"audit:1\.2"/);
  return JSON.parse(text) as AuditFacts & { cut?: boolean; details: Record<string, unknown> };
};

describe('a line', () => {
  it('is whole as long as it fits, to the byte', () => {
    const rest = MOST_LINE_BYTES - 1 - Buffer.byteLength(auditLine({ ...FACTS, details: { text: '' } }));
    expect(read({ details: { text: 'x'.repeat(rest) } })).not.toHaveProperty('cut');
    const cut = read({ details: { text: 'x'.repeat(rest + 1) } });
    expect(cut.cut).toBe(true);
    expect(cut.details['text']).toBe(`${'x'.repeat(512)}…`);
  });

  it.each([
    ['long texts', { a: 'x'.repeat(9_000), b: 'short' }, { b: 'short' }],
    ['texts of characters of many bytes', { a: '😀'.repeat(3_000), b: 'short' }, { b: 'short' }],
    ['texts that JSON escapes', { a: '\u0000'.repeat(3_000), b: 'short' }, { b: 'short' }],
    ['texts that are escaped after that', { a: '\u202e'.repeat(3_000), b: 'short' }, { b: 'short' }],
    ['long lists', { list: Array(1_000).fill('0123456789'), b: 'short' }, { b: 'short' }],
    ['lists of long texts in objects', { in: { list: Array(300).fill('x'.repeat(300)) }, b: 'short' }, { b: 'short' }],
    ['so many fields that nothing helps', Object.fromEntries(Array.from({ length: 999 }, (_, n) => [`f${n}`, n])), {}],
  ])('loses the ends of %s, and says so', (_, details, kept) => {
    const line = read({ details });
    expect(line.cut).toBe(true);
    expect(line).toMatchObject({ action: 'machine.notice', subject: 'm', details: kept });
    expect(JSON.stringify(line)).not.toMatch(/\\ud[89ab]/);
  });

  it('fits even with a subject, an action and an actor that are too long', () => {
    const long = '\u0000'.repeat(9_000);
    const line = read({
      subject: long,
      action: long,
      actor: { kind: long, id: long, email: long },
      organization_id: long,
    });
    expect(line.cut).toBe(true);
  });
});

it('what stands for lost lines is the same each time it is written, and another one for others', () => {
  const lost = { epoch: 7, first: 3, last: 9, at: 0 };
  const { text, number } = lostLine('event', lost);
  expect(number).toBe(9);
  expect(JSON.parse(text)).toEqual({
    source: 'event',
    id: 'event:lost:7.3-9',
    at: '1970-01-01T00:00:00.000Z',
    actor: { kind: 'system' },
    action: 'audit_lines.lost',
    subject: 'event',
    details: { lines: 7 },
  });
  expect(lostLine('event', { ...lost, first: 2 }).text).toContain('event:lost:7.2-9');
});

it('the oldest lines come first, but those of one source in their order, also where the clock went back', () => {
  const lines = (source: PlacedLine['source'], ...times: number[]) =>
    times.map((at, index) => ({ source, number: index + 1, at, text: `${source} ${index + 1}` }));
  const sources = [lines('audit', 5, 1, 9), lines('event', 2, 3), []];
  expect(oldestLines(sources, 10).map(({ text }) => text)).toEqual([
    'event 1',
    'event 2',
    'audit 1',
    'audit 2',
    'audit 3',
  ]);
  expect(oldestLines(sources, 3).map(({ text }) => text)).toEqual(['event 1', 'event 2', 'audit 1']);
});

import type { FastifyReply } from 'fastify';
import type { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { answerCsv } from '../../control-plane/http/routes/csv.js';

/** The line that a row is written as. */
async function lineOf(row: { name: string | null; amount_micro?: number }): Promise<string> {
  const reply: Record<string, unknown> = { type: () => reply, header: () => reply };
  const file = { name: 'test.csv', columns: ['name', 'amount_micro'] };
  const csv = answerCsv(
    reply as unknown as FastifyReply,
    {},
    file,
    () => ({ items: [row], next_cursor: null }),
    (item) => item,
  ) as unknown as Readable;
  let text = '';
  for await (const chunk of csv) text += String(chunk);
  return text.slice('name,amount_micro\n'.length, -1);
}

it.each([
  ['=SUM(A1)', "'=SUM(A1)"],
  [' =SUM(A1)', " '=SUM(A1)"],
  ['x;=SUM(A1)', "x;'=SUM(A1)"],
  ['x; +1', "x; '+1"],
  ['x;\t@A1', "x;\t'@A1"],
  ['x\t-1', "x\t'-1"],
  ['x;;=1;=2', "x;;'=1;'=2"],
  ['x;\uFF1D1', "x;'\uFF1D1"],
])('%j is no formula, whichever sign separates cells', async (name, written) => {
  expect(await lineOf({ name })).toBe(`${written},`);
});

it('neither is what comes after the end of a line', async () => {
  expect(await lineOf({ name: 'x\n=SUM(A1)' })).toBe(`"x\n'=SUM(A1)",`);
});

it('quotes do not hide one', async () => {
  expect(await lineOf({ name: 'x;=HYPERLINK("http://a.example")' })).toBe(`"x;'=HYPERLINK(""http://a.example"")",`);
});

it.each(['plain', 'a-b; c', 'a=b', 'gpu+cpu', 'me@example.com', '50 %'])('%j stays as it is', async (name) => {
  expect(await lineOf({ name })).toBe(`${name},`);
});

it('numbers stay numbers, and what is absent is empty', async () => {
  expect(await lineOf({ name: null, amount_micro: -1_500 })).toBe(',-1500');
});

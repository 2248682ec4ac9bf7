import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Benchmark } from './benchmark.js';
import { addPast, foundMarket, type Market } from './past-market.js';

const ROWS = 2_500_000;
const INSTANCES = 200_000;
const POLL_MS = 5;
/** Reads an answer to its end, in a process of its own, and prints its bytes. */
const READER = `const answer = await fetch(process.argv[1], { headers: { Authorization: process.argv[2] } });
let bytes = 0; for await (const chunk of answer.body) bytes += chunk.length; console.log(bytes);`;

/**
 * Reads a ledger of 2.5 million rows and a list of 200,000 instances whole, while a second client asks /healthz every five
 * milliseconds: how long that takes, and the second client's worst answer, in ms.
 */
export const ledger: Benchmark = async () => {
  const market = await foundMarket();
  try {
    await market.controlPlane.rewrite((database) => addPast(database, INSTANCES, ROWS));
    const results: Record<string, number> = {};
    for (const [name, path] of [
      ['csv', '/v1/billing/transactions.csv'],
      ['transactions', '/v1/billing/transactions'],
      ['instances', '/v1/instances?include_destroyed=true'],
    ] as const) {
      Object.assign(results, await readBeside(market, name, path));
    }
    return results;
  } finally {
    market.agent.close();
    await market.controlPlane.stop();
  }
};

async function readBeside({ controlPlane, renter }: Market, name: string, path: string) {
  const began = performance.now();
  const authorization = `Bearer ${renter.token ?? ''}`;
  const args = ['--input-type=module', '-e', READER, `${controlPlane.url}${path}`, authorization];
  const reader = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const over = once(reader, 'exit');
  const answers: number[] = [];
  while (reader.exitCode === null) {
    const asked = performance.now();
    await (await fetch(`${controlPlane.url}/healthz`)).arrayBuffer();
    answers.push(performance.now() - asked);
    await pause(POLL_MS);
  }
  await over;
  answers.sort((a, b) => a - b);
  return {
    [`${name}, seconds`]: Math.round((performance.now() - began) / 100) / 10,
    [`${name}, healthz median ms`]: tenth(answers[Math.floor(answers.length / 2)] ?? NaN),
    [`${name}, healthz worst ms`]: tenth(answers.at(-1) ?? NaN),
  };
}

const tenth = (value: number) => Math.round(value * 10) / 10;

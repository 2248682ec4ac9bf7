import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MINUTE_MS } from '../../shared/time.js';
import { createControlPlane, type ControlPlane } from '../../control-plane/app.js';
import { sql, statement } from '../../control-plane/store/sql.js';
import { silentLogger } from '../../shared/logger.js';
import { ManualClock } from '../harness/manual-clock.js';
import { INSTANCES, populate } from '../harness/large-marketplace.js';
import { PLAIN_TEXT } from '../harness/plain-text.js';
import type { Benchmark } from './benchmark.js';

const LIMIT_MS = 50;

/** 50,000 running instances of 2,000 organizations, all attested up to now, are settled in one go. */
export const settlement: Benchmark = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-bench-'));
  const clock = new ManualClock();
  const turns: number[] = [];
  const waiting: (() => void)[] = [];
  const controlPlane = createControlPlane(configOf(folder), silentLogger, {
    clock,
    defer: (run) => void waiting.push(run),
  });
  try {
    populate(controlPlane, clock.now());
    const measure = async () => {
      const began = performance.now();
      await settleAll(controlPlane, waiting, turns);
      return performance.now() - began;
    };
    await pass(controlPlane, clock);
    await measure();
    turns.length = 0;
    await pass(controlPlane, clock);
    const totalMs = await measure();
    const longestMs = Math.max(...turns);
    return {
      instances: INSTANCES,
      charged_rows: countCharges(controlPlane),
      total_ms: Math.round(totalMs),
      turns: turns.length,
      longest_turn_ms: Math.round(longestMs * 10) / 10,
      limit_over_longest_turn: Math.round((LIMIT_MS / longestMs) * 100) / 100,
    };
  } finally {
    controlPlane.platform.store.close();
    rmSync(folder, { recursive: true, force: true });
  }
};

/** A minute in which every workload has run on. */
async function pass(controlPlane: ControlPlane, clock: ManualClock): Promise<void> {
  clock.advance(MINUTE_MS);
  controlPlane.platform.store.transact((tx) => {
    tx.run(statement(sql`UPDATE meter_intervals SET attested_to = ${tx.now}`));
    tx.run(statement(sql`UPDATE organizations SET settle_at = ${tx.now}`));
  });
  await nextTurn();
}

/** Each turn of the event loop runs what the one before has put off. */
async function settleAll({ workers }: ControlPlane, waiting: (() => void)[], turns: number[]): Promise<void> {
  workers.nudge('settle');
  for (let run = waiting.shift(); run; run = waiting.shift()) {
    const began = performance.now();
    run();
    turns.push(performance.now() - began);
    await nextTurn();
  }
}

function countCharges({ platform: { store } }: ControlPlane): number {
  const count = statement<{ rows: number }>(sql`SELECT count(*) AS rows FROM transactions WHERE kind = 'charge'`);
  return store.transact((tx) => tx.get(count))?.rows ?? 0;
}

function configOf(folder: string) {
  return {
    httpAddress: '',
    grpcAddress: '',
    tls: PLAIN_TEXT,
    database: join(folder, 'gpurent.db'),
    secretKey: Buffer.alloc(32, 7),
    logLevel: 'silent',
    logFormat: null,
    rateLimits: { perAddress: 1, perCredential: 1, attemptsPerAddress: 1, attemptsPerAccount: 1 },
  };
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createControlPlane, type ControlPlane } from '../../control-plane/app.js';
import { sql, statement } from '../../control-plane/store/sql.js';
import { silentLogger } from '../../shared/logger.js';
import { ManualClock } from '../harness/manual-clock.js';
import type { Benchmark } from './benchmark.js';

const ORGANIZATIONS = 2_000;
const INSTANCES_EACH = 25;
const MINUTE_MS = 60_000;
const LIMIT_MS = 50;
const RATE_MICRO = 2_000_000;

/** 50,000 running instances of 2,000 organisations, all attested up to now, are settled in one go. */
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
      instances: ORGANIZATIONS * INSTANCES_EACH,
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
    database: join(folder, 'gpurent.db'),
    secretKey: Buffer.alloc(32, 7),
    logLevel: 'silent',
    logFormat: null,
    rateLimits: { perAddress: 1, perCredential: 1, attemptsPerAddress: 1, attemptsPerAccount: 1 },
  };
}

/** Rows as a marketplace of this size has them. */
function populate({ platform: { store } }: ControlPlane, now: number): void {
  const numbers = (count: number) =>
    sql`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})`;
  store.transact((tx) => {
    tx.run(
      statement(sql`
      INSERT INTO machines (id, credential_hash, name, region, public_address, arch, cpu_model, cpu_cores, memory_mb, disk_gb,
        disk_quota, vm_capable, gpu_release_supported, enrolled_at)
      VALUES ('machine', '', '', '', '', '', '', 1, 1, 1, '', 0, 1, ${now})`),
    );
    tx.run(
      statement(sql`
      INSERT INTO offers (id, machine_id, num_gpus, price_per_hour_micro, storage_price_per_gb_hour_micro, created_at)
      VALUES ('offer', 'machine', 1, ${RATE_MICRO}, 100, ${now})`),
    );
    tx.run(
      statement(sql`
      INSERT INTO templates (id, hash_id, visibility, name, description, kind, mode, image, arch, ssh_user, env_sealed, command,
        ports, uses_access_token, coming_soon, recommended, created_at)
      VALUES ('template', '', 'system', '', '', 'container', '[]', '', '', '', x'', '[]', '[]', 0, 0, 0, ${now})`),
    );
    tx.run(
      statement(sql`
      ${numbers(ORGANIZATIONS)} INSERT INTO organizations (id, name, balance_micro, created_at)
      SELECT 'organization-' || i, '', 1000000000000, ${now} FROM n`),
    );
    tx.run(
      statement(sql`
      ${numbers(ORGANIZATIONS * INSTANCES_EACH)} INSERT INTO instances (id, organization_id, machine_id, offer_id, template_id,
        status, num_gpus, disk_gb, price_per_hour_micro, storage_price_per_gb_hour_micro, template_snapshot, ssh_user,
        deployed_by, created_at, started_at, status_changed_at, progress_at)
      SELECT 'instance-' || i, 'organization-' || (i % ${sql.lit(ORGANIZATIONS)}), 'machine', 'offer', 'template', 'running', 1, 10,
        ${RATE_MICRO}, 100, '{}', '', '', ${now}, ${now}, ${now}, ${now} FROM n`),
    );
    tx.run(
      statement(sql`
      INSERT INTO meter_intervals (instance_id, organization_id, machine_id, meter, opened_at, attested_to, settled_to)
      SELECT id, organization_id, machine_id, 'gpu', ${now}, ${now}, ${now} FROM instances`),
    );
  });
}

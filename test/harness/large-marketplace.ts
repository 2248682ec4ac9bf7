import type { ControlPlane } from '../../control-plane/app.js';
import { sql, statement } from '../../control-plane/store/sql.js';

const ORGANIZATIONS = 2_000;
export const INSTANCES = 25 * ORGANIZATIONS;
const RATE_MICRO = 2_000_000;

/** 50,000 running instances of 2,000 organizations, on one machine that is never there. */
export function populate({ platform: { store } }: ControlPlane, now: number): void {
  const numbers = (count: number) =>
    sql`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})`;
  store.transact((tx) => {
    tx.run(
      statement(sql`
      INSERT INTO machines (id, name, region, public_address, arch, cpu_model, cpu_cores, memory_mb, disk_gb,
        disk_quota, vm_capable, gpu_release_supported, enrolled_at)
      VALUES ('machine', '', '', '', '', '', 1, 1, 1, '', 0, 1, ${now})`),
    );
    tx.run(
      statement(sql`
      INSERT INTO offers (id, machine_id, num_gpus, price_per_hour_micro, storage_price_per_gb_hour_micro, created_at)
      VALUES ('offer', 'machine', 1, ${RATE_MICRO}, 100, ${now})`),
    );
    tx.run(
      statement(sql`
      INSERT INTO templates (id, hash_id, visibility, name, description, kind, mode, image, arch, ssh_user, env_encrypted, command,
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
      ${numbers(INSTANCES)} INSERT INTO instances (id, organization_id, machine_id, offer_id, template_id,
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

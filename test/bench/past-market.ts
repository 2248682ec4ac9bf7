import type BetterSqlite3 from 'better-sqlite3';
import type { ApiClient } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { FakeAgent } from '../harness/fake-agent.js';
import { MeasuredControlPlane } from './measured-control-plane.js';

/** One organization with one running instance, on one machine. */
export interface Market {
  controlPlane: MeasuredControlPlane;
  agent: FakeAgent;
  /** Sends what is measured. */
  renter: ApiClient;
  instanceId: string;
}

/** Founds a market whose renter has had one instance, and has another that runs. */
export async function foundMarket(settings: Readonly<Record<string, string>> = {}): Promise<Market> {
  const controlPlane = await MeasuredControlPlane.start(settings);
  const { token } = await controlPlane.operator.post('/v1/operator/enrollment-tokens', { body: {} });
  const agent = await FakeAgent.enroll(controlPlane.grpcAddress, token, { gpus: 8 });
  await agent.connect();
  const [offer_id, template_id] = [await controlPlane.offer(agent.hostId, 1), await controlPlane.template()];
  const account = await controlPlane.signUp('renter@example.com', 100_000_000);
  const renter = controlPlane.connect(account.token);
  const deploy = async () => {
    const { id } = await renter.post('/v1/instances', { body: { offer_id, template_id, disk_gb: 10 } });
    return eventually('the instance to run', async () => {
      const { status } = await renter.get('/v1/instances/{id}', { params: { path: { id } } });
      return status === 'running' && id;
    });
  };
  const past = await deploy();
  await renter.delete('/v1/instances/{id}', { params: { path: { id: past } } });
  return { controlPlane, agent, renter: controlPlane.measured(account.token), instanceId: await deploy() };
}

/** Adds charges of the renter on each of the last 30 days, for some instances. */
export function addCharges(database: BetterSqlite3.Database, instances: number): void {
  const today = Math.floor(Date.now() / 86_400_000);
  const renter = "(SELECT organization_id FROM instances WHERE status = 'destroyed' LIMIT 1)";
  database.exec(`WITH RECURSIVE days(day) AS (SELECT 0 UNION ALL SELECT day + 1 FROM days WHERE day < 29)
    INSERT INTO charge_days (organization_id, grouped_by, key, day, instance_id, gpu_micro, disk_micro)
    SELECT organization_id, 'instance', id, ${today} - 1 - day, id, 1000000, 1000
    FROM days, (SELECT * FROM instances WHERE organization_id = ${renter} LIMIT ${instances})`);
  database.exec(`INSERT INTO organization_days (organization_id, day, gpu_micro, disk_micro)
    SELECT organization_id, day, sum(gpu_micro), sum(disk_micro) FROM charge_days
    WHERE organization_id = ${renter} AND grouped_by = 'instance' GROUP BY day
    ON CONFLICT DO UPDATE SET gpu_micro = excluded.gpu_micro, disk_micro = excluded.disk_micro`);
}

/** Copies the past instance and its interval, and the credit, each copy with an id of its own. */
export function addPast(database: BetterSqlite3.Database, instances: number, ledgerRows: number): void {
  const copy = (table: string, where: string, count: number, values: Record<string, string>) => {
    const columns = database.pragma(`table_info(${table})`) as { name: string }[];
    const names = columns.map(({ name }) => name).filter((name) => !(name in values && values[name] === ''));
    const chosen = names.map((name) => values[name] ?? name).join(', ');
    database.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      INSERT INTO ${table} (${names.join(', ')})
      SELECT ${chosen} FROM n, (SELECT * FROM ${table} WHERE ${where} LIMIT 1)`);
  };
  const id = (base: number) => `printf('00000000-0000-4000-%04d-%012d', ${base}, i)`;
  const past = "(SELECT id FROM instances WHERE status = 'destroyed' LIMIT 1)";
  copy('meter_intervals', `instance_id = ${past}`, instances, { id: '', instance_id: past });
  copy('instances', "status = 'destroyed'", instances, { id: id(1), created_at: 'created_at - i' });
  copy('transactions', "kind = 'credit'", ledgerRows, { id: id(2) });
}

import type { ChargeGroup, Meter } from '../../domain/money.js';
import type { DayCharge } from '../../domain/settlement.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, listIn, query, sql, statement } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

/** A charge for one meter of an instance, by the UTC days of its use. */
export interface DatedCharge {
  organizationId: string;
  instanceId: string;
  meter: Meter;
  days: readonly DayCharge[];
}

type Amounts = Record<Meter, number>;
type ChargedInstance = Pick<
  Row<'instances'>,
  'id' | 'machine_id' | 'template_id' | 'api_key_id' | 'deployed_by' | 'label'
>;

/**
 * Adds charges to the sums of the days of their use, which reports read instead of the ledger: of each organization, of each machine,
 * and of each {@link ChargeGroup}. Late usage adds to a past day. Many instances share an organization, a machine or a template: each sum
 * is written once.
 */
export function addToDays(tx: Tx, charges: readonly DatedCharge[]): void {
  const ids = JSON.stringify(charges.map(({ instanceId }) => instanceId));
  const instances = new Map(tx.all(chargedInstances({ ids })).map((row) => [row.id, row]));
  const [organizations, machines, groups] = [new DaySums(), new DaySums(), new DaySums()];
  for (const { organizationId, instanceId, meter, days } of charges) {
    const instance = instances.get(instanceId);
    if (!instance) throw new Error(`instance ${instanceId} is charged and is missing in the database`);
    const keys = keysOf(instance);
    for (const { day, micro } of days) {
      organizations.add(`${day} ${organizationId}`, { organizationId, day }, meter, micro);
      machines.add(`${day} ${instance.machine_id}`, { machineId: instance.machine_id, day }, meter, micro);
      for (const [group, key] of keys) {
        const row = { organizationId, group, key, day, instanceId };
        groups.add(`${day} ${organizationId} ${group} ${key}`, row, meter, micro);
      }
    }
  }
  tx.run(addingToOrganizations({ rows: organizations.toJson() }));
  tx.run(addingToMachines({ rows: machines.toJson() }));
  tx.run(addingToGroups({ rows: groups.toJson() }));
}

/** Returns the key of an instance in each group; empty where it has no API key or label. */
function keysOf(instance: ChargedInstance): [ChargeGroup, string][] {
  const { id, template_id, api_key_id, deployed_by, label } = instance;
  return [
    ['instance', id],
    ['template', template_id],
    ['api_key', api_key_id ?? ''],
    ['member', deployed_by],
    ['label', label ?? ''],
  ];
}

/** Rows of a table of days, each with what is added to it. */
class DaySums {
  private readonly sums = new Map<string, object & Amounts>();

  /** Adds to the row with this id, which is `row` if there is none yet. */
  add(id: string, row: object, meter: Meter, micro: number): void {
    const sum = this.sums.get(id) ?? { ...row, gpu: 0, disk: 0 };
    sum[meter] += micro;
    this.sums.set(id, sum);
  }

  toJson(): string {
    return JSON.stringify([...this.sums.values()]);
  }
}

const chargedInstances = compileOnce(({ ids }: { ids: string }) =>
  query
    .selectFrom('instances')
    .select(['id', 'machine_id', 'template_id', 'api_key_id', 'deployed_by', 'label'])
    .where('id', 'in', listIn(ids)),
);

const [gpu, disk] = [sql`json_extract(value, '$.gpu')`, sql`json_extract(value, '$.disk')`];
const adding = sql`DO UPDATE SET gpu_micro = gpu_micro + excluded.gpu_micro, disk_micro = disk_micro + excluded.disk_micro`;

const addingToOrganizations = compileOnce(({ rows }: { rows: string }) =>
  statement(sql`
    INSERT INTO organization_days (organization_id, day, gpu_micro, disk_micro)
    SELECT json_extract(value, '$.organizationId'), json_extract(value, '$.day'), ${gpu}, ${disk}
    FROM json_each(${rows}) WHERE true ON CONFLICT (organization_id, day) ${adding}`),
);

const addingToMachines = compileOnce(({ rows }: { rows: string }) =>
  statement(sql`
    INSERT INTO machine_days (machine_id, day, gpu_micro, disk_micro)
    SELECT json_extract(value, '$.machineId'), json_extract(value, '$.day'), ${gpu}, ${disk}
    FROM json_each(${rows}) WHERE true ON CONFLICT (machine_id, day) ${adding}`),
);

const addingToGroups = compileOnce(({ rows }: { rows: string }) =>
  statement(sql`
    INSERT INTO charge_days (organization_id, grouped_by, key, day, instance_id, gpu_micro, disk_micro)
    SELECT json_extract(value, '$.organizationId'), json_extract(value, '$.group'), json_extract(value, '$.key'),
      json_extract(value, '$.day'), json_extract(value, '$.instanceId'), ${gpu}, ${disk}
    FROM json_each(${rows}) WHERE true ON CONFLICT (organization_id, grouped_by, key, day) ${adding}`),
);

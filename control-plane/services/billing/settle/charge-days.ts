import type { ChargeGroup, Meter } from '../../../domain/money/money.js';
import type { DayCharge } from '../../../domain/money/settlement.js';
import { compileOnce, sql, statement } from '../../../store/sql.js';
import type { Row } from '../../../store/schema.js';
import type { Tx } from '../../../store/store.js';

/** A charge for one meter of an instance, by the UTC days of its use. */
export interface DatedCharge {
  organizationId: string;
  instanceId: string;
  meter: Meter;
  days: readonly DayCharge[];
}

export type ChargedInstance = Pick<
  Row<'instances'>,
  'id' | 'machine_id' | 'template_id' | 'api_key_id' | 'deployed_by' | 'label'
>;

/**
 * Adds charges to the sums of the days of their use, which reports read instead of the ledger: of each organization, of each machine, of
 * each {@link ChargeGroup}, and of what counts for the caps of each API key. Late usage adds to a past day. Many instances share an
 * organization, a machine or a template: each sum is written once.
 */
export function addToDays(tx: Tx, charges: readonly DatedCharge[], charged: readonly ChargedInstance[]): void {
  const instances = new Map(charged.map((row) => [row.id, row]));
  const [organizations, machines, groups, keys] = [new DaySums(), new DaySums(), new DaySums(), new DaySums()];
  for (const { organizationId, instanceId, meter, days } of charges) {
    const instance = instances.get(instanceId);
    if (!instance) throw new Error(`instance ${instanceId} is charged and is missing in the database`);
    for (const { day, micro, apiKeyId } of days) {
      const use = { meter, micro };
      const addTo = (group: ChargeGroup, key: string) =>
        groups.add(`${group} ${day} ${organizationId} ${key}`, use, organizationId, day, group, key, instanceId);
      addTo('instance', instanceId);
      addTo('template', instance.template_id);
      // Empty where there is none.
      addTo('api_key', instance.api_key_id ?? '');
      addTo('member', instance.deployed_by);
      addTo('label', instance.label ?? '');
      organizations.add(`${day} ${organizationId}`, use, organizationId, day);
      machines.add(`${day} ${instance.machine_id}`, use, instance.machine_id, day);
      if (apiKeyId !== null) keys.add(`${day} ${apiKeyId}`, use, apiKeyId, day);
    }
  }
  tx.run(addingToOrganizations({ rows: organizations.toJson() }));
  tx.run(addingToMachines({ rows: machines.toJson() }));
  tx.run(addingToGroups({ rows: groups.toJson() }));
  if (!keys.isEmpty) tx.run(addingToKeys({ rows: keys.toJson() }));
}

/** Rows of a table of days, each with what is added to it. A settlement adds thousands: rows are lists, which are read faster. */
class DaySums {
  private readonly sums = new Map<string, { values: readonly (string | number)[]; gpu: number; disk: number }>();

  get isEmpty(): boolean {
    return this.sums.size === 0;
  }

  /** Adds to the row with this id, which begins with `values`. */
  add(id: string, { meter, micro }: { meter: Meter; micro: number }, ...values: (string | number)[]): void {
    const sum = this.sums.get(id);
    if (sum) sum[meter] += micro;
    else this.sums.set(id, { values, gpu: meter === 'gpu' ? micro : 0, disk: meter === 'disk' ? micro : 0 });
  }

  /** Returns the rows as JSON: the GPU time and the disk, in micro-dollars, then the values. */
  toJson(): string {
    return JSON.stringify(Array.from(this.sums.values(), ({ values, gpu, disk }) => [gpu, disk, ...values]));
  }
}

const adding = sql`DO UPDATE SET gpu_micro = gpu_micro + excluded.gpu_micro, disk_micro = disk_micro + excluded.disk_micro`;

const addingToOrganizations = compileOnce(({ rows }: { rows: string }) =>
  statement(sql`
    INSERT INTO organization_days (gpu_micro, disk_micro, organization_id, day)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
    FROM json_each(${rows}) WHERE true ON CONFLICT (organization_id, day) ${adding}`),
);

const addingToMachines = compileOnce(({ rows }: { rows: string }) =>
  statement(sql`
    INSERT INTO machine_days (gpu_micro, disk_micro, machine_id, day)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
    FROM json_each(${rows}) WHERE true ON CONFLICT (machine_id, day) ${adding}`),
);

const addingToGroups = compileOnce(({ rows }: { rows: string }) =>
  statement(sql`
    INSERT INTO charge_days (gpu_micro, disk_micro, organization_id, day, grouped_by, key, instance_id)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
    FROM json_each(${rows}) WHERE true ON CONFLICT (organization_id, grouped_by, key, day) ${adding}`),
);

const addingToKeys = compileOnce(({ rows }: { rows: string }) =>
  statement(sql`
    INSERT INTO key_days (micro, api_key_id, day)
    SELECT (value ->> 0) + (value ->> 1), value ->> 2, value ->> 3
    FROM json_each(${rows}) WHERE true
    ON CONFLICT (api_key_id, day) DO UPDATE SET micro = micro + excluded.micro`),
);

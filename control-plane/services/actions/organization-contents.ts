import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import { listApiKeys, type ApiKeyDetails } from '../organizations/keys/api-keys.js';
import { getOrganization } from '../organizations/organizations.js';
import { describeOrganizationOf, type OrganizationDetails } from '../billing/reports/billed-organizations.js';
import { liveMachineIds } from '../instances/queries.js';
import { findMachineRow } from '../machines/machines.js';
import { newestFirst, pageFrom, pageOf, type ListOrPage, type Page, type PageRequest } from '../system/pages.js';
import type { Core, Platform } from '../system/platform.js';

/** Returns an organization for an operator. Refuses with ORGANIZATION_NOT_FOUND. */
export function describeForOperator(platform: Platform, id: string): OrganizationDetails {
  return platform.store.transact((tx) => {
    getOrganization(tx, id);
    return describeOrganizationOf(platform, tx, id);
  });
}

/** Lists the active API keys of an organization for an operator, newest first. Refuses with ORGANIZATION_NOT_FOUND. */
export function listKeysOf(platform: Platform, id: string, request: PageRequest): Page<ApiKeyDetails> {
  platform.store.transact((tx) => getOrganization(tx, id));
  return listApiKeys(platform, { organizationId: id }, request);
}

/** What operators see of a template of renters: nothing that it runs with. */
export type TemplateName = Pick<Row<'templates'>, 'id' | 'name' | 'kind' | 'visibility' | 'image' | 'created_at'>;

/** Lists the active templates of an organization for an operator, newest first. Refuses with ORGANIZATION_NOT_FOUND. */
export function listTemplatesOf(core: Core, id: string, request: PageRequest): Page<TemplateName> {
  const its = query
    .selectFrom('templates')
    .select(['id', 'name', 'kind', 'visibility', 'image', 'created_at'])
    .where('organization_id', '=', id)
    .where('deactivated_at', 'is', null);
  return core.store.transact((tx) => {
    getOrganization(tx, id);
    return pageOf(tx, its, request, newestFirst());
  });
}

/** A machine on which an organization has instances that are not destroyed. */
export interface UsedMachine {
  id: string;
  name: string;
  region: string;
  instances: number;
}

/** Lists, for an operator, the machines on which an organization has instances, by id. Refuses with ORGANIZATION_NOT_FOUND. */
export function listMachinesOf(core: Core, id: string, request: PageRequest): ListOrPage<UsedMachine> {
  const machines = core.store.transact((tx) => {
    getOrganization(tx, id);
    const counts = new Map<string, number>();
    for (const machineId of liveMachineIds(tx, id)) counts.set(machineId, (counts.get(machineId) ?? 0) + 1);
    return [...counts].map(([machineId, instances]) => {
      const { name, region } = findMachineRow(tx, machineId);
      return { id: machineId, name, region, instances };
    });
  });
  machines.sort((one, other) => (one.id < other.id ? -1 : 1));
  return pageFrom(machines, { limit: 100, ...request }, { by: { id: 'asc' }, keyOf: (machine) => [machine.id] });
}

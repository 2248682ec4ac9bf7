import type { ApiKeyKind } from '../../domain/caller.js';
import { allowedActions, type InstanceAction, type InstanceStatus } from '../../domain/instances/instance-state.js';
import { withoutValues } from '../../domain/instances/environment.js';
import { instancePorts } from '../../domain/catalogue/template-port.js';
import { oncePer } from '../../store/remembered.js';
import { compileOnce, query, rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from '../organizations/organizations.js';
import { readTemplateSnapshot, type TemplateDetails } from '../catalogue/stored-template.js';
import type { Instance } from '../instances/queries.js';
import type { Platform } from '../system/platform.js';

export type InstanceDetails = Omit<Instance, 'template_snapshot' | 'workload_encrypted' | 'access_token_encrypted'> & {
  access_token: string | null;
  allowed_actions: readonly InstanceAction[];
  stop_releases_gpus: boolean;
  /** When it is destroyed because it is in `error`; null: it is not. */
  destroys_at: number | null;
  deployed_via_api_key: { id: string; name: string; kind: ApiKeyKind; prefix: string; revoked: boolean } | null;
  template: TemplateDetails;
} & Rented;

/** What an instance rents, and where. */
export interface Rented {
  gpu_model: string | null;
  num_gpus: number;
  machine: { name: string; region: string };
}

/** Statuses that show an error. In the others the error is kept but hidden, and shows again if the instance comes back. */
const SHOWS_ERRORS: readonly InstanceStatus[] = ['error', 'running', 'stopped'];

/** Returns an instance as its renter sees it, with the same fields in every status. */
export function describeInstance(platform: Platform, tx: Tx, instance: Instance): InstanceDetails {
  const { encryption, destroyErrorsAfterMs } = platform;
  const { template_snapshot, workload_encrypted: _, access_token_encrypted, ...row } = instance;
  const accessToken =
    access_token_encrypted && (encryption.decrypt('instance.access_token', access_token_encrypted) as string);
  const template = readTemplateSnapshot(template_snapshot);
  const opened = instancePorts(template.mode, template.ports).find(({ open_button }) => open_button);
  return {
    ...row,
    jupyter_url: withToken(row.jupyter_url, accessToken),
    open_url: opened?.guard === 'proxy' ? withToken(row.open_url, accessToken) : row.open_url,
    ...(SHOWS_ERRORS.includes(row.status) ? {} : { error_code: null, error_message: null }),
    access_token: accessToken,
    allowed_actions: allowedActions(row.status),
    destroys_at:
      row.status === 'error' && destroyErrorsAfterMs !== null ? row.progress_at + destroyErrorsAfterMs : null,
    stop_releases_gpus: getOrganization(tx, row.organization_id).payments_frozen_at !== null,
    deployed_via_api_key: row.api_key_id === null ? null : describeKey(tx, row.api_key_id),
    template,
    ...describeRented(tx, row.offer_id),
  };
}

function describeRented(tx: Tx, offerId: string): Rented {
  const found = tx.get(offered({ offerId }));
  if (!found) throw new Error(`there is no offer ${offerId}`);
  const { gpu_model, num_gpus, name, region } = found;
  return { gpu_model, num_gpus, machine: { name, region } };
}

const offered = compileOnce(({ offerId }: { offerId: string }) =>
  query
    .selectFrom('offers')
    .innerJoin('machines', 'machines.id', 'offers.machine_id')
    .select(['offers.gpu_model', 'offers.num_gpus', 'machines.name', 'machines.region'])
    .where('offers.id', '=', offerId),
);

/**
 * Returns an instance as callers see it who may not see its secrets: without access token, also in its links, and without the values of
 * its environment. Returns the same object for the same instance.
 */
export const withoutSecrets = oncePer((instance: InstanceDetails): InstanceDetails => {
  const { template } = instance;
  return {
    ...instance,
    access_token: null,
    jupyter_url: withoutToken(instance.jupyter_url),
    open_url: withoutToken(instance.open_url),
    template: { ...template, env: withoutValues(template.env) },
  };
});

/** Adds the access token to a link, because hosts report links without it: they do not have the token. */
function withToken(link: string | null, accessToken: string | null): string | null {
  if (link === null || accessToken === null || !URL.canParse(link)) return link;
  const url = new URL(link);
  url.searchParams.set('token', accessToken);
  return url.href;
}

function withoutToken(link: string | null): string | null {
  if (link === null || !URL.canParse(link)) return link;
  const url = new URL(link);
  url.searchParams.delete('token');
  return url.href;
}

function describeKey(tx: Tx, id: string): InstanceDetails['deployed_via_api_key'] {
  const key = tx.get(rowById('api_keys', id));
  return key
    ? { id: key.id, name: key.name, kind: key.kind, prefix: key.prefix, revoked: key.revoked_at !== null }
    : null;
}

import { browserHost } from '../../domain/browser-host.js';
import { invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Core, Platform } from '../system/platform.js';

/**
 * Tells whether renters reach instances at one of these names, each as `browserHost` returns it. There, browsers show every cookie of the
 * name also to instances, because cookies are not bound to a port.
 */
export function leadsToInstances({ store }: Core, hosts: readonly string[]): boolean {
  return store.transact((tx) => hosts.some((host) => tx.get(machineAt({ host })) !== undefined));
}

const machineAt = compileOnce(({ host }: { host: string }) =>
  query
    .selectFrom('machines')
    .select('id')
    .where('browser_host', '=', host)
    .where('removed_at', 'is', null)
    .limit(sql.lit(1)),
);

/**
 * Refuses with VALIDATION_FAILED a host that takes the configured name of this control plane as its address: nobody could sign in there
 * in a browser. A machine that has had this address before keeps it.
 */
export function refuseOwnName(
  { publicUrl }: Pick<Platform, 'publicUrl'>,
  publicAddress: string,
  known?: Pick<Row<'machines'>, 'browser_host'>,
): void {
  const host = browserHost(publicAddress);
  if (publicUrl === null || host === undefined || host === known?.browser_host) return;
  if (host !== browserHost(new URL(publicUrl).host)) return;
  throw invalidField(
    'public_address',
    `${host} is the name of the control plane itself, and browsers would show its cookies to instances; set GPURENT_AGENT_PUBLIC_ADDRESS to another name or to the IP address of this host`,
  );
}

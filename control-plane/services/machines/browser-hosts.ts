import { compileOnce, query, sql } from '../../store/sql.js';
import type { Platform } from '../system/platform.js';

/**
 * Tells whether renters reach instances at one of these names, each as `browserHost` returns it. There, browsers show every cookie of the
 * name also to instances, because cookies are not bound to a port.
 */
export function leadsToInstances({ store }: Platform, hosts: readonly string[]): boolean {
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

import { sql, statement } from '../../store/sql.js';
import { readMeta, writeMeta, type MetaKey } from '../../store/meta.js';
import type { Store, Tx } from '../../store/store.js';
import type { Purpose, Encryption } from './encryption.js';

/** Every encrypted column, with the purpose of its values. */
export const ENCRYPTED_COLUMNS = [
  { table: 'templates', column: 'env_encrypted', purpose: 'template.env' },
  { table: 'templates', column: 'registry_encrypted', purpose: 'template.registry' },
  { table: 'instances', column: 'workload_encrypted', purpose: 'instance.workload' },
  { table: 'instances', column: 'access_token_encrypted', purpose: 'instance.access_token' },
  { table: 'webhook_endpoints', column: 'secret_encrypted', purpose: 'webhook.secret' },
  { table: 'webhook_endpoints', column: 'previous_secret_encrypted', purpose: 'webhook.secret' },
  { table: 'mails', column: 'content_encrypted', purpose: 'mail.content' },
  { table: 'issuers', column: 'client_secret_encrypted', purpose: 'issuer.client_secret' },
  { table: 'second_factors', column: 'secret_encrypted', purpose: 'totp.secret' },
  { table: 'factor_requests', column: 'secret_encrypted', purpose: 'totp.secret' },
] as const;
const ENCRYPTED_META = ['key-check', 'authority_key'] as const satisfies MetaKey[];

/** Encrypts again, in one transaction, every value from the key `from` to the key `to`. Returns the number of values. */
export function reencrypt(store: Store, from: Encryption, to: Encryption): number {
  return store.transact((tx) => {
    const again = (purpose: Purpose, sealed: Buffer) => to.encrypt(purpose, from.decrypt(purpose, sealed));
    let count = 0;
    for (const place of ENCRYPTED_COLUMNS) count += reencryptColumn(tx, place, again);
    for (const key of ENCRYPTED_META) {
      const sealed = readMeta(tx, key);
      if (sealed === undefined) continue;
      writeMeta(tx, key, again(key, Buffer.from(sealed, 'base64')).toString('base64'));
      count++;
    }
    return count;
  });
}

function reencryptColumn(
  tx: Tx,
  { table, column, purpose }: (typeof ENCRYPTED_COLUMNS)[number],
  again: (purpose: Purpose, sealed: Buffer) => Buffer,
): number {
  const rows = tx.all(
    statement<{ id: string; sealed: Buffer }>(
      sql`SELECT id, ${sql.ref(column)} AS sealed FROM ${sql.table(table)} WHERE ${sql.ref(column)} IS NOT NULL`,
    ),
  );
  for (const { id, sealed } of rows)
    tx.run(
      statement(sql`UPDATE ${sql.table(table)} SET ${sql.ref(column)} = ${again(purpose, sealed)} WHERE id = ${id}`),
    );
  return rows.length;
}

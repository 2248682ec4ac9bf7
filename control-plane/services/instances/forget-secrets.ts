import { SetupError } from '../../../shared/coded-error.js';
import { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { deleteMeta, writeMeta } from '../../store/meta.js';
import { query, sql } from '../../store/sql.js';
import type { Store } from '../../store/store.js';
import { encryptWorkload } from './workload.js';
import { KEY_CHECK, isKeyOf } from '../secrets/key-check.js';
import type { Encryption } from '../secrets/encryption.js';
import { recordEvent } from '../system/timeline.js';

const FORGOTTEN =
  'the operator has lost the key to what is kept secret: environment and access token of this instance are not known any more. It runs on, and can be stopped, started and destroyed; its access cannot be replaced';

/**
 * Forgets everything that was sealed with a key that is lost, in one transaction, so that the store can be used with another one:
 * environments and registry passwords of templates, what instances were deployed with, their access tokens, the authority's key.
 * Instances stay as they are. Returns how many templates and instances that concerns. Throws SetupError where the key is not lost.
 */
export function forgetEncrypted(store: Store, encryption: Encryption): { templates: number; instances: number } {
  if (isKeyOf(store, encryption))
    throw new SetupError('the secret key opens this database: there is nothing to forget');
  return store.transact((tx) => {
    const environment = { env_encrypted: encryption.encrypt('template.env', []), registry_encrypted: null };
    const templates = tx.run(query.updateTable('templates').set(environment));
    const live = tx.all(query.selectFrom('instances').select('id').where('status', '<>', sql.lit('destroyed')));
    // Without a revision hosts leave the access as it is that they have.
    const access = { access_token_encrypted: null, access_revision: 0, access_replacement: null };
    const workload_encrypted = encryptWorkload(encryption, WorkloadSpec.fromPartial({}));
    tx.run(
      query
        .updateTable('instances')
        .set({ ...access, workload_encrypted })
        .where('status', '<>', sql.lit('destroyed')),
    );
    for (const { id } of live) recordEvent(tx, id, 'secrets_lost', FORGOTTEN);
    deleteMeta(tx, 'authority_certificate');
    deleteMeta(tx, 'authority_key');
    writeMeta(tx, KEY_CHECK, encryption.encrypt(KEY_CHECK, true).toString('base64'));
    return { templates, instances: live.length };
  });
}

import { SetupError } from '../../../shared/coded-error.js';
import { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { deleteMeta, writeMeta } from '../../store/meta.js';
import { query, sql } from '../../store/sql.js';
import type { Store, Tx } from '../../store/store.js';
import { encryptWorkload } from './workload.js';
import { KEY_CHECK, isKeyOf } from '../secrets/key-check.js';
import type { Encryption } from '../secrets/encryption.js';
import { forgetMails } from '../mail/outbox.js';
import { recordNote } from '../events/timeline.js';
import { forgetWebhookSecrets } from '../webhooks/secrets.js';

const FORGOTTEN =
  'the operator has lost the secret key, so the environment and the access token of this instance are lost. The instance goes on and can be stopped, started and destroyed; its access cannot be replaced';

/**
 * Deletes everything that was encrypted with a lost key, in one transaction, so that the database can be used with another key:
 * environments and registry passwords of templates, workloads and access tokens of instances, secrets of webhooks, mails that wait,
 * and the authority, and what `others` delete. Instances go on. Returns the numbers of templates and instances affected. Throws
 * SetupError if the key is not lost.
 */
export function forgetEncrypted(
  store: Store,
  encryption: Encryption,
  others: readonly ((tx: Tx, encryption: Encryption) => void)[],
): { templates: number; instances: number } {
  if (isKeyOf(store, encryption))
    throw new SetupError('the secret key decrypts this database: nothing needs to be forgotten');
  return store.transact((tx) => {
    const environment = { env_encrypted: encryption.encrypt('template.env', []), registry_encrypted: null };
    const templates = tx.run(query.updateTable('templates').set(environment));
    const live = tx.all(query.selectFrom('instances').select('id').where('status', '<>', sql.lit('destroyed')));
    // With revision 0, commands carry no access, so hosts keep the access that they have.
    const access = { access_token_encrypted: null, access_revision: 0, access_replacement: null };
    const workload_encrypted = encryptWorkload(encryption, WorkloadSpec.fromPartial({}));
    tx.run(
      query
        .updateTable('instances')
        .set({ ...access, workload_encrypted })
        .where('status', '<>', sql.lit('destroyed')),
    );
    for (const { id } of live) recordNote(tx, id, 'secrets_lost', FORGOTTEN);
    forgetWebhookSecrets(tx, encryption);
    forgetMails(tx);
    for (const forget of others) forget(tx, encryption);
    deleteMeta(tx, 'authority_certificate');
    deleteMeta(tx, 'authority_key');
    writeMeta(tx, KEY_CHECK, encryption.encrypt(KEY_CHECK, true).toString('base64'));
    return { templates, instances: live.length };
  });
}

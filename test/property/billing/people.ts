import type { ApiKeyCaller, Caller, SessionCaller } from '../../../control-plane/domain/caller.js';
import { createApiKey } from '../../../control-plane/services/organizations/keys/api-keys.js';
import { createTemplate, systemBy } from '../../../control-plane/services/catalogue/template-editing.js';
import { createEnrollmentToken, enrollHost } from '../../../control-plane/services/machines/enrollment.js';
import type { Platform } from '../../../control-plane/services/system/platform.js';
import { query } from '../../../control-plane/store/sql.js';
import type { Inventory } from '../../../shared/gen/gpurent/agent/v1/agent.js';

/** Who deploys or starts. */
export const WHO = ['member', 'key', 'other key'] as const;
export type Who = (typeof WHO)[number];

/** One organization with its only member, who is operator, too, and two API keys; one machine; one template. */
export function addPeople(
  platform: Platform,
  inventory: Inventory,
): {
  renter: SessionCaller;
  callers: Record<Who, Caller>;
  keys: Record<Who, string | null>;
  machineId: string;
  templateId: string;
} {
  const [userId, organizationId] = [platform.ids.uuid(), platform.ids.uuid()];
  const email = 'renter@example.com';
  platform.store.transact((tx) => {
    const created_at = tx.now;
    const user = { id: userId, email, name: 'renter', password_hash: '', is_operator: 1 as const, created_at };
    tx.run(query.insertInto('users').values(user));
    tx.run(
      query.insertInto('organizations').values({ id: organizationId, name: 'renter', balance_micro: 0, created_at }),
    );
  });
  const role = 'admin' as const;
  const renter = {
    kind: 'session' as const,
    sessionId: '',
    userId,
    email,
    isOperator: true,
    isWithFactor: false,
    lacksFactor: false,
    organizationId,
    role,
  };
  const { token } = createEnrollmentToken(platform, renter, { max_uses: 1, expires_in_hours: 1 });
  const machineId = enrollHost(platform, { token, inventory, hostId: '', earlier: [] }).hostId;
  const templateId = createTemplate(platform, systemBy(renter), { name: 'template', image: 'image:1' }).id;
  const [key, other] = [addKey(platform, renter), addKey(platform, renter)];
  const callers = { member: renter, key, 'other key': other };
  const keys = { member: null, key: key.keyId, 'other key': other.keyId };
  return { renter, callers, keys, machineId, templateId };
}

function addKey(platform: Platform, renter: SessionCaller): ApiKeyCaller {
  const { key } = platform.store.transact((tx) => createApiKey(platform, tx, renter, { name: 'key', kind: 'team' }));
  return {
    kind: 'api_key',
    keyId: key.id,
    keyKind: 'team',
    isReadOnly: false,
    name: key.name,
    prefix: key.prefix,
    creatorId: renter.userId,
    creatorEmail: renter.email,
    organizationId: renter.organizationId,
  };
}

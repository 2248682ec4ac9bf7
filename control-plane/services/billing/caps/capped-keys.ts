import type { SessionCaller } from '../../../domain/caller.js';
import { NO_CAPS, type Caps } from '../../../domain/money/spend-cap.js';
import { createApiKey, type ApiKeyDetails, type NewApiKey } from '../../organizations/keys/api-keys.js';
import type { Core } from '../../system/platform.js';
import { replaceCaps } from './spend-caps.js';

/**
 * Creates an API key with caps on what it may spend; absent ones are none. Refuses like {@link createApiKey}. A member may cap the key
 * that they create, although only admins and the role billing change caps later: a cap gives a key less.
 */
export function createCappedKey(
  core: Core,
  caller: SessionCaller,
  { spend_caps, ...request }: NewApiKey & { spend_caps?: Partial<Caps> | null },
): { key: ApiKeyDetails; secret: string } {
  return core.store.transact((tx) => {
    const made = createApiKey(core, tx, caller, request);
    // A new key has used nothing that would have to be settled before.
    const owner = { organizationId: caller.organizationId, apiKeyId: made.key.id };
    if (!spend_caps) return made;
    const caps = { ...NO_CAPS, ...spend_caps };
    replaceCaps(tx, owner, caps);
    const hasSome = Object.values(caps).some((micro) => micro !== null);
    return { ...made, key: { ...made.key, spend_caps: hasSome ? caps : null } };
  });
}

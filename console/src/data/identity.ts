import type { Me } from './models.js';
import { sendOrganization } from './organization.js';

let shown: string | undefined;

/**
 * Returns the answer about who is signed in, if the page shows what is theirs. It shows what belongs to the first whom it was told of, and
 * to their organization: for anybody else it is loaded anew, and what it shows does not become theirs meanwhile.
 */
export function checkIdentity(me: Me): Me | Promise<never> {
  const { user, active_organization_id: organization } = me;
  const identity = `${user.id} ${organization ?? ''}`;
  shown ??= identity;
  if (shown !== identity) {
    location.reload();
    return new Promise(() => undefined);
  }
  sendOrganization(organization ?? undefined);
  return me;
}

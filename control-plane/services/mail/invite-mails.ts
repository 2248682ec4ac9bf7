import { DAY_MS } from '../../../shared/time.js';
import { MAIL_LIMITS } from '../../domain/mail.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';
import { countInvitesTo, queueMail } from './outbox.js';

/**
 * Refuses with LIMIT_REACHED when an organization has invited {@link MAIL_LIMITS}.invitesADay people by mail in the last 24 hours: so
 * nobody can use this control plane to write to many strangers. Without mail there is no such limit.
 */
export function checkInvitesADay({ mail }: Platform, tx: Tx, organizationId: string): void {
  if (!mail) return;
  const limit = MAIL_LIMITS.invitesADay;
  const oldest = tx.get(nthNewest({ organizationId, since: tx.now - DAY_MS }));
  if (!oldest) return;
  const again = new Date(oldest.created_at + DAY_MS).toISOString();
  const message = `${limit} invitations in 24 hours are the limit, because each is sent by mail; try again at ${again}`;
  throw new Refusal('LIMIT_REACHED', message, { limit });
}

/**
 * Mails an invitation to the invited address; the mail has its token. Returns whether it does: not without mail, and not when many
 * organizations have invited this address lately.
 */
export function mailInvite(
  platform: Platform,
  tx: Tx,
  invite: Row<'invites'>,
  { token, invitedBy }: { token: string; invitedBy: string },
): boolean {
  if (!platform.mail) return false;
  const { id, organization_id, email, role, expires_at } = invite;
  const most = MAIL_LIMITS.invitesToOneADay;
  if (countInvitesTo(tx, email, most) >= most) return false;
  const organization = tx.get(query.selectFrom('organizations').select('name').where('id', '=', organization_id));
  const whose = { userId: null, address: email, organizationId: organization_id };
  const names = { organization: organization?.name ?? '', invited_by: invitedBy };
  const item = { kind: 'invite' as const, invite_id: id, ...names, role, token, expires_at };
  return queueMail(platform, tx, { ...whose, about: `invite ${id}`, item });
}

const nthNewest = compileOnce(({ organizationId, since }: { organizationId: string; since: number }) =>
  query
    .selectFrom('mails')
    .select('created_at')
    .where('organization_id', '=', organizationId)
    .where('created_at', '>', since)
    .where('kind', '=', sql.lit('invite'))
    .orderBy('created_at', 'desc')
    .limit(sql.lit(1))
    .offset(sql.lit(MAIL_LIMITS.invitesADay - 1)),
);

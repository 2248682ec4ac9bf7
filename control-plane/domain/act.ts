import type { AccountCaller, Caller } from './caller.js';

/** Everything that is recorded of what was done in an organization. */
export const ACTS = [
  'api_key.create',
  'api_key.revoke',
  'checkout.create',
  'credit.grant',
  'dispute.close',
  'dispute.open',
  'domain.assign',
  'domain.withdraw',
  'instance.access',
  'instance.adopt',
  'instance.credit_ignored_stop',
  'instance.deploy',
  'instance.destroy',
  'instance.start',
  'instance.stop',
  'instance.update',
  'invite.accept',
  'invite.create',
  'invite.withdraw',
  'member.end_sessions',
  'member.join',
  'member.leave',
  'member.password_reset',
  'member.remove',
  'member.role',
  'member.second_factor_removal',
  'member.second_factor_removal_cancel',
  'member.second_factor_removed',
  'organization.create',
  'organization.rename',
  'organization.restore',
  'organization.second_factor',
  'organization.suspend',
  'schedule.remove',
  'schedule.replace',
  'spend_caps.replace',
  'template.create',
  'template.deactivate',
  'template.duplicate',
  'template.update',
  'webhook.create',
  'webhook.delete',
  'webhook.replay',
  'webhook.rotate_secret',
  'webhook.test',
  'webhook.update',
] as const;
export type Act = (typeof ACTS)[number];

export const ACTOR_KINDS = ['user', 'api_key', 'operator', 'system'] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** Who has done something. */
export interface Actor {
  kind: ActorKind;
  /** Of a user or an API key. */
  id: string | null;
  /** The address of a user, or the name and prefix of an API key. */
  name: string;
  /** What an operator has said. */
  reason: string | null;
}

/** The control plane itself, for example because a balance is used up. */
export const SYSTEM: Actor = { kind: 'system', id: null, name: 'control plane', reason: null };

/** Returns an operator as renters see them: who of the operators it was, only the operators' own log says. */
export function anOperator(reason: string | null): Actor {
  return { kind: 'operator', id: null, name: 'operator', reason };
}

export function actorOf(caller: Caller | AccountCaller): Actor {
  if (caller.kind !== 'api_key') return userActor(caller.userId, caller.email);
  return { kind: 'api_key', id: caller.keyId, name: `${caller.name} (${caller.prefix}…)`, reason: null };
}

export function userActor(id: string, email: string): Actor {
  return { kind: 'user', id, name: email, reason: null };
}

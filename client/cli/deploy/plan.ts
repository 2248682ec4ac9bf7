import type { components, operations } from '../../api/index.js';
import { usageError } from '../errors/cli-error.js';
import type { Terminal } from '../terminal/terminal.js';
import type { Wishes } from './wishes.js';

export type DeployBody = operations['deployInstance']['requestBody']['content']['application/json'];

/** What is deployed: every choice is made. */
export interface Plan {
  offer: components['schemas']['Offer'];
  template: components['schemas']['Template'];
  diskGb: number;
  /** Null: nobody can log in by SSH. */
  sshKeyId: string | null;
}

/** Returns the body of a deploy. Throws a usage error for variables that are malformed or missing. */
export function bodyOf(
  { offer, template, diskGb, sshKeyId }: Plan,
  wishes: Wishes,
  { env, now }: Terminal,
): DeployBody {
  const { label, for: time, maxCost, idleStop, onLimit } = wishes;
  const variables = variablesOf(wishes, env);
  return {
    offer_id: offer.id,
    template_id: template.id,
    disk_gb: diskGb,
    ...(label === undefined ? {} : { label }),
    ...(sshKeyId === null ? {} : { ssh_key_id: sshKeyId }),
    ...(time === undefined ? {} : { stop_at: new Date(now() + time).toISOString() }),
    ...(maxCost === undefined ? {} : { max_charge_micro: maxCost }),
    ...(idleStop === undefined ? {} : { idle_stop_minutes: idleStop }),
    ...(onLimit === undefined ? {} : { on_limit: onLimit }),
    ...(variables.length > 0 ? { env_overrides: variables } : {}),
  };
}

type Variables = NonNullable<DeployBody['env_overrides']>;

function variablesOf({ env = [], secretEnv = [] }: Wishes, ours: Terminal['env']): Variables {
  return [
    ...env.map((text) => {
      const [, key = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (!key) throw usageError(`"${text}" sets no variable`, 'Give it like --env EPOCHS=10.');
      return { key, value };
    }),
    ...secretEnv.map((key) => {
      const value = ours[key];
      // Others can read the arguments of a program, but not its environment.
      if (value === undefined)
        throw usageError(`there is no variable ${key} here`, `Set it, then give its name: --secret-env ${key}`);
      return { key, value, secret: true };
    }),
  ];
}

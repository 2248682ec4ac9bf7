import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Encryption } from '../secrets/encryption.js';
import type { Core } from '../system/platform.js';

/** Most templates that one run looks at: each can be megabytes long. */
export const TEMPLATES_A_RUN = 10;

/**
 * Ends a template that nobody can deploy any more, so that who makes and deactivates templates again and again fills no database: deletes
 * it, or leaves a row of it, without what it has run, for the instances that name it. Instances have a copy of their own.
 */
export function endTemplate({ encryption }: Pick<Core, 'encryption'>, tx: Tx, id: string, endedAt: number): void {
  const unnamed = query
    .deleteFrom('templates')
    .where('id', '=', id)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('instances')
            .select(sql.lit(1).as('one'))
            .whereRef('instances.template_id', '=', 'templates.id')
            .limit(sql.lit(1)),
        ),
      ),
    );
  if (tx.run(unnamed) > 0) return;
  const empty = { ...emptied(encryption), deactivated_at: endedAt };
  tx.run(query.updateTable('templates').set(empty).where('id', '=', id));
}

/** Ends the templates that an earlier release has deactivated and kept whole, at most {@link TEMPLATES_A_RUN}. Returns the number. */
export function endOldTemplates(core: Core, tx: Tx): number {
  const found = tx.all(whole({ now: tx.now }));
  for (const { id, deactivated_at } of found) endTemplate(core, tx, id, deactivated_at ?? tx.now);
  return found.length;
}

/** The `hash_id` of what runs nothing any more: no template has it. An index of the templates that are still whole knows it. */
const EMPTIED = '';

const whole = compileOnce(({ now }: { now: number }) =>
  query
    .selectFrom('templates')
    .select(['id', 'deactivated_at'])
    .where('deactivated_at', '<=', now)
    .where('hash_id', '<>', sql.lit(EMPTIED))
    .limit(sql.lit(TEMPLATES_A_RUN)),
);

/** Returns the columns without which a row is short. */
function emptied(encryption: Encryption) {
  return {
    hash_id: EMPTIED,
    description: '',
    readme: null,
    onstart: null,
    command: '[]',
    ports: '[]',
    env_encrypted: encryption.encrypt('template.env', []),
    registry_encrypted: null,
  };
}

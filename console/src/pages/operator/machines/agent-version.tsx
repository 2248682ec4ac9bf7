import type { Machine } from '../models.js';
import styles from '../operator.module.css';

/** The version of an agent, and to which it should be upgraded. */
export function AgentVersion({ machine: { agent_version, upgrade_to } }: { machine: Machine }) {
  return (
    <>
      {agent_version ?? 'not reported'}
      {upgrade_to !== null && <span className={styles.weak}>upgrade to {upgrade_to}</span>}
    </>
  );
}

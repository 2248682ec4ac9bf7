import { useQuery } from '@tanstack/react-query';
import { organization, sshKeys } from '../../data/queries.js';
import { LinkButton } from '../../parts/button.js';
import { Money } from '../../parts/money.js';
import styles from './first-steps.module.css';

/** What a renter without instances does next, from key to balance to deploy. Each step has its button, and says when it is done. */
export function FirstSteps() {
  const keys = useQuery(sshKeys);
  const money = useQuery(organization);
  const hasKey = (keys.data?.length ?? 0) > 0;
  const hasMoney = (money.data?.balance_micro ?? 0) > 0;
  const next = !hasKey ? 'key' : !hasMoney ? 'money' : 'deploy';
  const kind = (step: typeof next) => (step === next ? 'main' : 'quiet');
  return (
    <section className={styles.steps}>
      <h2>You have no instances</h2>
      <p className={styles.words}>
        An instance is a template that runs on GPUs of a machine. You pay for each second in which it runs.
      </p>
      <ol className={styles.list}>
        <li>
          <Step title="Add an SSH key" isDone={hasKey}>
            With it you log in to your instances.
          </Step>
          <LinkButton kind={kind('key')} to="/keys">
            {hasKey ? 'Look at your keys' : 'Add a key'}
          </LinkButton>
        </li>
        <li>
          <Step title="Have a balance" isDone={hasMoney}>
            {money.data ? (
              <>
                You have <Money micro={money.data.balance_micro} />. A deploy needs enough for one hour.
              </>
            ) : (
              'A deploy needs enough for one hour.'
            )}
          </Step>
          <LinkButton kind={kind('money')} to="/billing">
            {hasMoney ? 'Look at the billing' : 'Add money'}
          </LinkButton>
        </li>
        <li>
          <Step title="Deploy" isDone={false}>
            Choose a machine and what is to run on it.
          </Step>
          <LinkButton kind={kind('deploy')} to="/market">
            See what is free
          </LinkButton>
        </li>
      </ol>
    </section>
  );
}

function Step({ title, isDone, children }: { title: string; isDone: boolean; children: React.ReactNode }) {
  return (
    <div>
      <h3>
        {title}
        {isDone && <span className={styles.done}> ✓ done</span>}
      </h3>
      <p className={styles.words}>{children}</p>
    </div>
  );
}

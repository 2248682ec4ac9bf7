import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { me, organization, sshKeys } from '../data/queries.js';
import { roleOf } from '../data/role.js';
import { classNames } from './class-names.js';
import { LinkButton } from './button.js';
import styles from './first-minutes.module.css';
import { Money } from './money.js';
import { Empty, Loaded } from './states.js';

/** What a new renter does first, each step with its button: a key, money, a machine. For an organization without instances. */
export function FirstMinutes() {
  const user = useQuery(me);
  const role = user.data && roleOf(user.data);
  if (role === 'admin' || role === 'member') return <Steps />;
  return (
    <Loaded query={user} rows={3}>
      {() => <Empty title="Nothing is rented yet">Members of the organization can rent: ask one of its admins.</Empty>}
    </Loaded>
  );
}

function Steps() {
  const keys = useQuery(sshKeys);
  const money = useQuery(organization);
  const hasKey = (keys.data?.length ?? 0) > 0;
  const hasMoney = (money.data?.balance_micro ?? 0) > 0;
  const next = !hasKey ? 'key' : !hasMoney ? 'money' : 'machine';
  return (
    <Loaded query={keys} rows={3}>
      {() => (
        <Loaded query={money} rows={3}>
          {({ balance_micro }) => (
            <section className={styles.box} aria-labelledby="first-minutes">
              <h2 id="first-minutes">Your first instance, in three steps</h2>
              <ol className={styles.steps}>
                <Step
                  {...{ number: 1, title: 'Add your SSH key', isDone: hasKey, isNext: next === 'key' }}
                  button={<StepButton to="/keys" isDone={hasKey} isNext={next === 'key'} words="Add a key" />}
                >
                  With it you log in to your instances. Without one you can use only what has a page of its own, such as
                  JupyterLab.
                </Step>
                <Step
                  {...{ number: 2, title: 'Add money', isDone: hasMoney, isNext: next === 'money' }}
                  button={<StepButton to="/billing" isDone={hasMoney} isNext={next === 'money'} words="Add money" />}
                >
                  {hasMoney ? (
                    <>
                      Your balance is <Money micro={balance_micro} />.
                    </>
                  ) : (
                    'You pay in advance and by the second. What you do not use stays yours.'
                  )}
                </Step>
                <Step
                  {...{ number: 3, title: 'Choose a machine', isDone: false, isNext: next === 'machine' }}
                  button={
                    <StepButton to="/market" isDone={false} isNext={next === 'machine'} words="See what is free" />
                  }
                >
                  Before you deploy, you see what an hour costs and how long your balance lasts.
                </Step>
              </ol>
            </section>
          )}
        </Loaded>
      )}
    </Loaded>
  );
}

interface StepProps {
  number: number;
  title: string;
  isDone: boolean;
  isNext: boolean;
  button: ReactNode;
  children: ReactNode;
}

function Step({ number, title, isDone, isNext, button, children }: StepProps) {
  return (
    <li className={styles.step} aria-current={isNext ? 'step' : undefined}>
      <span className={classNames(styles.number, isDone && styles.done)} aria-hidden="true">
        {isDone ? '✓' : number}
      </span>
      <div className={styles.words}>
        <h3>
          {title}
          {isDone && <span className={styles.state}> done</span>}
        </h3>
        <p>{children}</p>
      </div>
      {button}
    </li>
  );
}

function StepButton(props: { to: '/keys' | '/billing' | '/market'; words: string; isDone: boolean; isNext: boolean }) {
  const { to, words, isDone, isNext } = props;
  if (isDone) return null;
  return (
    <LinkButton to={to} kind={isNext ? 'main' : 'quiet'}>
      {words}
    </LinkButton>
  );
}

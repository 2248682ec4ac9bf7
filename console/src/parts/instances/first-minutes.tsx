import { useQuery } from '@tanstack/react-query';
import { me, organization, sshKeys } from '../../data/api/queries.js';
import { useMay } from '../../data/api/rights.js';
import { roleOf } from '../../data/api/role.js';
import { WHO_PAYS } from '../../data/instances/who-pays.js';
import { LinkButton } from '../controls/button.js';
import { Money } from '../values/money.js';
import { Empty, Loaded } from '../controls/states.js';
import { Steps } from '../layout/steps.js';

/** What a new renter does first, each step with its button: a key, money, a machine. For an organization without instances. */
export function FirstMinutes() {
  const user = useQuery(me);
  const role = user.data && roleOf(user.data);
  if (role === 'admin' || role === 'member') return <FirstSteps />;
  return (
    <Loaded query={user} rows={3}>
      {() => <Empty title="Nothing is rented yet">Members of the organization can rent: ask one of its admins.</Empty>}
    </Loaded>
  );
}

function FirstSteps() {
  const keys = useQuery(sshKeys);
  const money = useQuery(organization);
  const mayPay = useMay('change_money');
  return (
    <Loaded query={keys} rows={3}>
      {(has) => (
        <Loaded query={money} rows={3}>
          {({ balance_micro }) => (
            <Steps
              title="Your first instance, in three steps"
              tasks={[
                {
                  title: 'Add your SSH key',
                  isDone: has.length > 0,
                  words: KEY_WORDS,
                  button: (kind) => (
                    <LinkButton to="/keys" search={{ add: 'ssh' }} kind={kind}>
                      Add a key
                    </LinkButton>
                  ),
                },
                {
                  title: 'Add money',
                  isDone: balance_micro > 0,
                  words: <MoneyWords micro={balance_micro} mayPay={mayPay} />,
                  ...(mayPay && {
                    button: (kind: 'main' | 'quiet') => (
                      <LinkButton to="/billing" search={{ pay: true }} kind={kind}>
                        Add money
                      </LinkButton>
                    ),
                  }),
                },
                {
                  title: 'Choose a machine',
                  isDone: false,
                  words: MACHINE_WORDS,
                  button: (kind) => (
                    <LinkButton to="/market" kind={kind}>
                      See what is free
                    </LinkButton>
                  ),
                },
              ]}
            />
          )}
        </Loaded>
      )}
    </Loaded>
  );
}

const KEY_WORDS =
  'With it you log in to your instances. Without one you can use only what has a page of its own, such as JupyterLab.';
const MACHINE_WORDS = 'Before you deploy, you see what an hour costs and how long your balance lasts.';

function MoneyWords({ micro, mayPay }: { micro: number; mayPay: boolean }) {
  if (micro <= 0 && !mayPay) return <>{WHO_PAYS}</>;
  if (micro <= 0) return <>You pay in advance and by the second. What you do not use stays yours.</>;
  return (
    <>
      Your balance is <Money micro={micro} />.
    </>
  );
}

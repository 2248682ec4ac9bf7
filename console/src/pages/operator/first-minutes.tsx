import { useQuery } from '@tanstack/react-query';
import { LinkButton } from '../../parts/controls/button.js';
import { Skeleton } from '../../parts/controls/states.js';
import { Steps } from '../../parts/layout/steps.js';
import { firstSteps } from './first-steps.js';
import styles from './operator.module.css';

/** What leads an empty control plane to its first rented instance, each step with its button. Nothing where something is rented. */
export function FirstMinutes() {
  const { data: done, isPending } = useQuery(firstSteps);
  if (isPending) return <Skeleton rows={8} />;
  if (!done) return null;
  const { signsUpByInvitation, ...steps } = done;
  if (Object.values(steps).every(Boolean)) return null;
  return (
    <div className={styles.cards}>
      <Steps
        title="To the first rented instance, in four steps"
        tasks={[
          {
            title: 'Add a machine',
            isDone: done.hasMachine,
            words: MACHINE_WORDS,
            button: (kind) => (
              <LinkButton kind={kind} to="/operator/machines/new">
                Add a machine
              </LinkButton>
            ),
          },
          {
            title: 'Offer its GPUs',
            isDone: done.hasOffer,
            words: OFFER_WORDS,
            button: (kind) => (
              <LinkButton kind={kind} to="/operator/offers" search={{ machine: '' }}>
                Make an offer
              </LinkButton>
            ),
          },
          {
            title: 'Make a template',
            isDone: done.hasTemplate,
            words: TEMPLATE_WORDS,
            button: (kind) => (
              <LinkButton kind={kind} to="/operator/templates/new">
                Make a template
              </LinkButton>
            ),
          },
          {
            title: 'Grant credit',
            isDone: done.hasCredit,
            words: <CreditWords byInvitation={signsUpByInvitation} />,
            button: (kind) => (
              <LinkButton kind={kind} to="/operator/organizations">
                Choose an organization
              </LinkButton>
            ),
          },
        ]}
      />
    </div>
  );
}

const MACHINE_WORDS = 'One line on its host enrolls it. Its owner needs root, and no account here.';
const OFFER_WORDS = 'Nobody can rent a machine before its GPUs have a price.';
const TEMPLATE_WORDS = 'It says what an instance runs. All renters see it, and can deploy it.';

function CreditWords({ byInvitation }: { byInvitation: boolean }) {
  if (byInvitation)
    return (
      <>
        Renters pay in advance. Here they sign up by invitation only: an admin of their organization invites them at{' '}
        <code>{location.origin}/team</code>, or they come by a company’s sign-in.
      </>
    );
  return (
    <>
      Renters pay in advance. They sign up at <code>{location.origin}/sign-up</code>; then their organization is in the
      list.
    </>
  );
}

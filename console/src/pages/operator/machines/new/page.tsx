import { getRouteApi } from '@tanstack/react-router';
import { useAct } from '../../../../data/act.js';
import { api } from '../../../../data/api.js';
import { Button } from '../../../../parts/button.js';
import { Page } from '../../../../parts/page.js';
import { ErrorBox } from '../../../../parts/states.js';
import styles from '../../operator.module.css';
import { Enrollment } from '../enrollment.js';
import { OPERATED } from '../../queries.js';
import { Arrivals } from './arrivals.js';
import { UsableTokens } from './usable-tokens.js';

const route = getRouteApi('/operator/machines/new');

export default function AddMachinePage() {
  const { since } = route.useSearch();
  const navigate = route.useNavigate();
  const make = useAct(
    () => api.post('/v1/operator/enrollment-tokens', { body: {} }),
    OPERATED,
    // So that the machine is still followed after a visit to another page.
    ({ created_at }) => void navigate({ search: { since: created_at }, replace: true }),
  );
  return (
    <Page title="Add a machine" lead="One line on its host enrolls it. Its owner needs root, and no account here.">
      {make.data ? (
        <Enrollment token={make.data} />
      ) : (
        <>
          <p className={styles.prose}>The line has a token that lets one host in, within 24 hours.</p>
          {make.error && <ErrorBox error={make.error} />}
          <Button kind={since === undefined ? 'main' : 'quiet'} isBusy={make.isPending} onClick={() => make.mutate()}>
            {since === undefined ? 'Make the line to paste' : 'Make another line'}
          </Button>
        </>
      )}
      {since !== undefined && <Arrivals since={since} />}
      <UsableTokens />
    </Page>
  );
}

import { getRouteApi } from '@tanstack/react-router';
import { useAct } from '../../../../data/forms/act.js';
import { api } from '../../../../data/api/api.js';
import { Page } from '../../../../parts/layout/page.js';
import { Enrollment } from '../enrollment.js';
import { OPERATED } from '../../queries.js';
import { Arrivals } from './arrivals.js';
import { TokenForm, type TokenTerms } from './token-form.js';
import { UsableTokens } from './usable-tokens.js';

const route = getRouteApi('/operator/machines/new');

export default function AddMachinePage() {
  const { since } = route.useSearch();
  const navigate = route.useNavigate();
  const make = useAct(
    (body: TokenTerms) => api.post('/v1/operator/enrollment-tokens', { body }),
    OPERATED,
    // So that the machines are still followed after a visit to another page: also those of an earlier line.
    ({ created_at }) => void navigate({ search: { since: since ?? created_at }, replace: true }),
  );
  return (
    <Page title="Add a machine" lead="One line on its host enrolls it. Its owner needs root, and no account here.">
      {make.data && <Enrollment key={make.data.id} token={make.data} />}
      <TokenForm isFirst={since === undefined} isBusy={make.isPending} error={make.error} onSubmit={make.mutate} />
      {since !== undefined && <Arrivals since={since} />}
      <UsableTokens />
    </Page>
  );
}

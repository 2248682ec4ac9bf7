import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { api } from '../../data/api.js';
import type { DeployRequest, Estimate } from '../../data/models.js';
import { useOneRequest } from '../../data/one-request.js';
import { instance as instanceQuery, instances } from '../../data/queries.js';
import { remedyOfCode } from '../../data/remedies.js';
import { Button } from '../../parts/button.js';
import { Facts } from '../../parts/facts.js';
import { Hourly, Money } from '../../parts/money.js';
import { ErrorBox, Notice, Skeleton, Unanswered } from '../../parts/states.js';
import { At, Lasts } from '../../parts/time.js';
import { keepKey } from './last-key.js';
import styles from './page.module.css';

const PAUSE_MS = 250;

/** What the deploy will cost, why it would be refused and what lifts that, and the button: it is there to be pressed when nothing would refuse it. */
export function Summary({ request, hasTemplate }: { request: DeployRequest | undefined; hasTemplate: boolean }) {
  const text = request && JSON.stringify(request);
  const asked = useSettled(text);
  const estimate = useQuery({
    queryKey: ['organization', 'estimate', asked],
    queryFn: ({ signal }) =>
      api.post('/v1/instances/estimate', { body: JSON.parse(asked ?? '') as DeployRequest, signal }),
    enabled: asked !== undefined,
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  const { deploy, isUnanswered } = useDeploy();
  const isCurrent = asked === text && estimate.isSuccess && !estimate.isPlaceholderData;
  // Whatever the estimate says: perhaps it is this deploy that has taken the GPUs.
  const isAgain = request !== undefined && isUnanswered(request);
  const canDeploy = isAgain || (request !== undefined && isCurrent && estimate.data.refusals.length === 0);
  const data = estimate.data;
  return (
    <>
      <aside id="summary" className={styles.summary} aria-label="Summary">
        <h2>Summary</h2>
        {!hasTemplate && <p>Choose a template: then you see what it costs.</p>}
        {hasTemplate && request === undefined && <p>Something that you have typed is wrong; it says so beside it.</p>}
        {estimate.error && <ErrorBox error={estimate.error} />}
        {data ? <Figures estimate={data} /> : asked && !estimate.error && <Skeleton rows={3} />}
        {deploy.error && <ErrorBox error={deploy.error} />}
        {isAgain && !deploy.isPending && <Unanswered />}
        <Button
          kind="main"
          disabled={!canDeploy}
          isBusy={deploy.isPending}
          onClick={() => request && deploy.mutate(request)}
        >
          Deploy
        </Button>
      </aside>
      {data && <Brief estimate={data} />}
    </>
  );
}

/** The summary in a line, which stays in sight where there is no room beside the form. */
function Brief({ estimate }: { estimate: Estimate }) {
  const { gpu_per_hour_micro, refusals } = estimate;
  return (
    <div className={styles.brief}>
      <span>
        {gpu_per_hour_micro !== null && <Hourly micro={gpu_per_hour_micro} />}
        {gpu_per_hour_micro !== null && (
          <>
            , your balance lasts <EstimateLasts of={estimate} />
          </>
        )}
      </span>
      <a href="#summary">{refusals.length === 0 ? 'Deploy' : 'What is in the way'}</a>
    </div>
  );
}

function Figures({ estimate }: { estimate: Estimate }) {
  const { gpu_per_hour_micro, disk_per_hour_micro, burn_per_hour_micro, refusals, warning } = estimate;
  return (
    <>
      <div aria-live="polite">
        {refusals.map(({ code, message }) => (
          <Refusal key={code} code={code} message={message} />
        ))}
        {warning !== null && <Notice kind="warning">{warning}</Notice>}
      </div>
      <Facts
        facts={[
          ...(gpu_per_hour_micro === null
            ? []
            : [['While it runs', <Hourly key="gpu" micro={gpu_per_hour_micro} />] as const]),
          ...(disk_per_hour_micro === null
            ? []
            : [['While it is stopped', <Hourly key="disk" micro={disk_per_hour_micro} />] as const]),
          ...(burn_per_hour_micro === null
            ? []
            : [['The balance must cover', <Hourly key="burn" micro={burn_per_hour_micro} />] as const]),
          ['Your balance', <Money key="balance" micro={estimate.balance_micro} />],
          ...(gpu_per_hour_micro === null ? [] : [['It lasts', <LastsUntil key="lasts" of={estimate} />] as const]),
        ]}
      />
    </>
  );
}

function LastsUntil({ of }: { of: Estimate }) {
  return (
    <>
      <EstimateLasts of={of} />
      {of.balance_lasts_until !== null && (
        <>
          , until <At at={of.balance_lasts_until} />
        </>
      )}
    </>
  );
}

function EstimateLasts({ of }: { of: Estimate }) {
  const { balance_micro, charged_per_hour_micro, balance_lasts_until } = of;
  return <Lasts balanceMicro={balance_micro} chargedMicro={charged_per_hour_micro ?? 0} until={balance_lasts_until} />;
}

function Refusal({ code, message }: { code: string; message: string }) {
  const { template } = getRouteApi('/deploy').useSearch();
  const remedy = remedyOfCode(code);
  return (
    <Notice kind="warning">
      <p>{message}</p>
      {remedy?.href === '/market' && (
        <Link to="/market" search={template === undefined ? {} : { template }}>
          {remedy.words}
        </Link>
      )}
      {/* In another window: what was typed here stays. */}
      {remedy && remedy.href !== '/market' && (
        <a href={remedy.href} target="_blank" rel="noreferrer">
          {remedy.words}
        </a>
      )}
    </Notice>
  );
}

/** Returns a text as it was once nobody has changed it for a moment. */
function useSettled(text: string | undefined): string | undefined {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

function useDeploy() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { send, isUnanswered } = useOneRequest<DeployRequest>('deploy');
  const deploy = useMutation({
    mutationFn: (body: DeployRequest) => send(body, (headers) => api.post('/v1/instances', { body, headers })),
    onSuccess: async (instance, { ssh_key_id }) => {
      keepKey(ssh_key_id);
      queries.setQueryData(instanceQuery(instance.id).queryKey, instance);
      void queries.invalidateQueries({ queryKey: instances.queryKey });
      await navigate({ to: '/instances/$id', params: { id: instance.id } });
    },
  });
  return { deploy, isUnanswered };
}

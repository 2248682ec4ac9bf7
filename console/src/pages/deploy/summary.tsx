import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect } from 'react';
import { addressForNewTab } from '../../data/api/organization.js';
import { api } from '../../data/api/api.js';
import type { DeployRequest, Estimate } from '../../data/api/models.js';
import { useOneRequest } from '../../data/api/one-request.js';
import { instance as instanceQuery, instances } from '../../data/api/queries.js';
import { remedyOfCode, type Remedy } from '../../data/api/remedies.js';
import { Button } from '../../parts/controls/button.js';
import { Facts } from '../../parts/layout/facts.js';
import { limitFacts } from '../../parts/values/limit-facts.js';
import { Hourly, Money } from '../../parts/values/money.js';
import { ErrorBox, Notice, Skeleton, Unanswered } from '../../parts/controls/states.js';
import { Ago, At, Lasts } from '../../parts/values/time.js';
import { keepKey } from './last-key.js';
import styles from './page.module.css';
import { atMostFor, useEstimate, useShownPrice, type Price } from './use-estimate.js';

/** What has to be known before a price can be said. */
type Lacking = keyof typeof LACKS;
const LACKS = {
  template: 'Choose a template: then you see what it costs.',
  machine: 'Choose a machine: then you see what it costs.',
  keys: 'Your SSH keys could not be read; it says so at their place.',
} as const;

interface Props {
  /** Undefined: something is missing or wrong. */
  request: DeployRequest | undefined;
  lacks: Lacking | undefined;
  /** Whether something that was typed is wrong. */
  isWrong: boolean;
  onDeployed: () => void;
}

/** What the deploy will cost, why it would be refused and what lifts that, and the button: it is there to be pressed when nothing would refuse it. */
export function Summary({ request, lacks, isWrong, onDeployed }: Props) {
  const { estimate: last, since, error, isCurrent, isAsked, askAgain } = useEstimate(request);
  const estimate = lacks ? undefined : last;
  const shown = useShownPrice(request && `${request.offer_id} ${request.disk_gb}`, isCurrent ? estimate : undefined);
  const { deploy, isUnanswered } = useDeploy(onDeployed);
  // Whatever the estimate says: perhaps it is this deploy that has taken the GPUs.
  const isAgain = request !== undefined && isUnanswered(request);
  const canDeploy = isAgain || (isCurrent && estimate?.refusals.length === 0 && !shown.hasRisen);
  // What was refused was another request.
  const { reset } = deploy;
  useEffect(() => reset(), [reset, request?.offer_id, request?.template_id, request?.disk_gb]);
  const accept = () => {
    reset();
    shown.accept();
  };
  return (
    <>
      <aside id="summary" className={styles.summary} aria-label="Summary">
        <h2>Summary</h2>
        {lacks && <p>{LACKS[lacks]}</p>}
        {!lacks && isWrong && <p>Something that you have typed is wrong; it says so beside it.</p>}
        {error && <ErrorBox error={error} retry={askAgain} remedyLink={StayingLink} />}
        {estimate && since !== undefined && <Figures estimate={estimate} since={since} />}
        {!estimate && !error && !lacks && (isAsked || !isWrong) && <Skeleton rows={3} />}
        {request && <Limits request={request} />}
        {deploy.error && !shown.hasRisen && <ErrorBox error={deploy.error} remedyLink={StayingLink} />}
        {isAgain && !deploy.isPending && <Unanswered />}
        {shown.hasRisen && shown.price && <Risen before={shown.price} onAccept={accept} />}
        <Button
          kind="main"
          disabled={!canDeploy}
          isBusy={deploy.isPending}
          onClick={() => request && deploy.mutate({ request, price: estimate }, { onError: askAgain })}
        >
          Deploy
        </Button>
      </aside>
      {estimate && <Brief estimate={estimate} />}
    </>
  );
}

/** What will end it by itself, so that no limit is missing that somebody believes to have set. */
function Limits({ request }: { request: DeployRequest }) {
  const facts = limitFacts(request);
  return facts.length === 0 ? null : <Facts inLines facts={facts} />;
}

/** Says that the price is above the one that was shown before, and lets it be accepted. */
function Risen({ before, onAccept }: { before: Price; onAccept: () => void }) {
  return (
    <div role="alert">
      <Notice kind="warning">
        <p>
          The price has risen. It was <Hourly micro={before.gpu_per_hour_micro ?? 0} /> while it runs and{' '}
          <Hourly micro={before.disk_per_hour_micro ?? 0} /> while it is stopped.
        </p>
        <Button onClick={onAccept}>Go on at the new price</Button>
      </Notice>
    </div>
  );
}

/** The summary in a line, which stays in sight where there is no room beside the form. */
function Brief({ estimate }: { estimate: Estimate }) {
  const { gpu_per_hour_micro, balance_micro, refusals } = estimate;
  return (
    <div className={styles.brief}>
      <span>
        {gpu_per_hour_micro !== null && <Hourly micro={gpu_per_hour_micro} />}
        {gpu_per_hour_micro !== null && balance_micro > 0 && (
          <>
            , your balance lasts <EstimateLasts of={estimate} />
          </>
        )}
      </span>
      <a href="#summary">{refusals.length === 0 ? 'Deploy' : 'What is in the way'}</a>
    </div>
  );
}

function Figures({ estimate, since }: { estimate: Estimate; since: string }) {
  const { gpu_per_hour_micro, disk_per_hour_micro, burn_per_hour_micro, refusals } = estimate;
  const warnings = [estimate.warning, estimate.driver_warning].filter((warning) => warning != null);
  return (
    <>
      <div aria-live="polite">
        {refusals.map(({ code, message }) => (
          <Refusal key={code} code={code} message={message} />
        ))}
        {warnings.map((warning) => (
          <Notice key={warning} kind="warning">
            {warning}
          </Notice>
        ))}
      </div>
      <Facts
        inLines
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
          // With no money there is nothing that lasts; the refusal says how much is missing.
          ...(gpu_per_hour_micro === null || estimate.balance_micro <= 0
            ? []
            : [['It lasts', <LastsUntil key="lasts" of={estimate} />] as const]),
        ]}
      />
      <p className={styles.since}>
        As of <Ago at={since} />
      </p>
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
  const remedy = remedyOfCode(code);
  return (
    <Notice kind="warning">
      <p>{message}</p>
      {remedy && <StayingLink remedy={remedy} />}
    </Notice>
  );
}

/** Leads to a remedy so that what was typed here stays: to another machine on this page, to all else in another window. */
function StayingLink({ remedy: { words, href } }: { remedy: Remedy }) {
  if (href === '/market')
    return (
      <Link to="/deploy" search={({ template }) => (template === undefined ? {} : { template })}>
        {words}
      </Link>
    );
  // It leads back here, with what was typed.
  if (href.startsWith('/account/prove')) return <a href={href}>{words}</a>;
  return (
    <a href={addressForNewTab(href)} target="_blank" rel="noreferrer">
      {words}
    </a>
  );
}

function useDeploy(onDeployed: () => void) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { send, isUnanswered } = useOneRequest<DeployRequest>('deploy');
  const deploy = useMutation({
    mutationFn: ({ request, price }: { request: DeployRequest; price: Price | undefined }) =>
      send(
        request,
        (headers, atMost) => api.post('/v1/instances', { body: { ...request, ...atMost }, headers }),
        price && atMostFor(price),
      ),
    onSuccess: async (instance, { request: { ssh_key_id } }) => {
      keepKey(ssh_key_id);
      onDeployed();
      queries.setQueryData(instanceQuery(instance.id).queryKey, instance);
      void queries.invalidateQueries({ queryKey: instances.queryKey });
      await navigate({ to: '/instances/$id', params: { id: instance.id } });
    },
  });
  return { deploy, isUnanswered };
}

import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useAct } from '../../../data/forms/act.js';
import { api } from '../../../data/api/api.js';
import { serverNow } from '../../../data/api/clock.js';
import type { WebhookDelivery } from '../../../data/api/models.js';
import { Button } from '../../../parts/controls/button.js';
import { Older } from '../../../parts/controls/older.js';
import { Empty, ErrorBox, Loaded } from '../../../parts/controls/states.js';
import { Marked } from '../../../parts/values/status.js';
import { TabLinks } from '../../../parts/layout/tab-links.js';
import { Table } from '../../../parts/layout/table.js';
import { Ago } from '../../../parts/values/time.js';
import styles from '../page.module.css';
import { STATES } from './search.js';

const route = getRouteApi('/webhooks/$id');
const PAGE = 25;
/** Attempts have no event. */
const PENDING_MS = 1_000;
const IDLE_MS = 15_000;

/** What was sent to an endpoint, newest first, and what it has answered. */
export function Deliveries({ id, isOn }: { id: string; isOn: boolean }) {
  const { state } = route.useSearch();
  const query = useInfiniteQuery({
    queryKey: ['webhooks', id, 'deliveries', state ?? 'all'],
    queryFn: ({ signal, pageParam }) => {
      const filter = { limit: PAGE, ...(state === undefined ? {} : { state }) };
      const cursor = pageParam === undefined ? {} : { cursor: pageParam };
      const params = { path: { id }, query: { ...filter, ...cursor } };
      return api.get('/v1/webhook-endpoints/{id}/deliveries', { params, signal });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data } }) => (isAnyDue(data?.pages ?? []) ? PENDING_MS : IDLE_MS),
  });
  const here = { to: '/webhooks/$id', params: { id } } as const;
  const tabs = STATES.map((each) => ({ ...here, title: each, search: { state: each }, isActive: each === state }));
  return (
    <>
      <TabLinks
        label="Deliveries"
        tabs={[{ ...here, title: 'all', search: {}, isActive: state === undefined }, ...tabs]}
      />
      <Loaded query={query} rows={4}>
        {({ pages }) => (
          <>
            <List deliveries={pages.flatMap(({ items }) => items)} isOn={isOn} />
            <Older query={query} />
          </>
        )}
      </Loaded>
    </>
  );
}

/** Whether an attempt is under way, or is made before the list would be read again. */
function isAnyDue(pages: readonly { items: WebhookDelivery[] }[]): boolean {
  const isDue = ({ next_attempt_at }: WebhookDelivery) =>
    next_attempt_at !== null && Date.parse(next_attempt_at) < serverNow() + IDLE_MS;
  return pages.some(({ items }) => items.some(isDue));
}

function List({ deliveries, isOn }: { deliveries: readonly WebhookDelivery[]; isOn: boolean }) {
  if (deliveries.length === 0)
    return <Empty title="None here">A delivery stays in this list for 30 days after its end.</Empty>;
  return (
    <Table
      label="Deliveries"
      rows={deliveries}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Event', cell: ({ type }) => type },
        { title: 'State', cell: (delivery) => <State delivery={delivery} /> },
        { title: 'Made', cell: ({ created_at }) => <Ago at={created_at} /> },
        { title: 'Attempts', cell: ({ attempts }) => attempts, isNumber: true },
        { title: 'Answer', cell: (delivery) => <Answer delivery={delivery} /> },
        { title: 'Acts', cell: (delivery) => <Replay delivery={delivery} isOn={isOn} />, isNumber: true },
      ]}
    />
  );
}

const SHAPES = { pending: 'half', delivered: 'dot', failed: 'square' } as const;

function State({ delivery: { state, next_attempt_at } }: { delivery: WebhookDelivery }) {
  return (
    <div>
      <Marked shape={SHAPES[state]}>{state}</Marked>
      {next_attempt_at !== null && (
        <div className={styles.description}>
          next attempt <Ago at={next_attempt_at} />
        </div>
      )}
    </div>
  );
}

/** Why an attempt has failed, beside its status; a later release may add reasons. */
const ERRORS: Readonly<Record<string, string>> = {
  bad_answer: 'no answer that can be read',
  certificate: 'its certificate is not trusted',
  disabled: 'the endpoint was switched off',
  events_expired: 'the events had expired',
  forbidden_address: 'its address is not on the Internet',
  internal: 'the control plane has failed',
  redirected: 'it leads elsewhere, which is not followed',
  status: '',
  timed_out: 'no answer within 15 s',
  unreachable: 'it cannot be reached',
  unresolved: 'its name has no address',
};

function Answer({ delivery: { last_status, last_error, last_answer } }: { delivery: WebhookDelivery }) {
  const reason = last_error === null ? '' : (ERRORS[last_error] ?? last_error);
  const words = [last_status === null ? '' : `HTTP ${last_status}`, reason].filter((word) => word !== '');
  return (
    <div className={styles.answer}>
      {words.join(', ')}
      {last_answer !== null && last_answer !== '' && (
        <details>
          <summary>What it said</summary>
          <pre>{last_answer}</pre>
        </details>
      )}
    </div>
  );
}

function Replay({ delivery: { id, type }, isOn }: { delivery: WebhookDelivery; isOn: boolean }) {
  const replay = useAct(
    () => api.post('/v1/webhook-deliveries/{id}/replay', { params: { path: { id } } }),
    [['webhooks'], ['audit-log']],
  );
  return (
    <>
      <Button isBusy={replay.isPending} disabled={!isOn} aria-label={`Replay: ${type}`} onClick={() => replay.mutate()}>
        Replay
      </Button>
      {replay.error && <ErrorBox error={replay.error} />}
    </>
  );
}

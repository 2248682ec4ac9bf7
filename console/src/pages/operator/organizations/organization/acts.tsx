import { api } from '../../../../data/api/api.js';
import { useDraft } from '../../../../data/forms/draft.js';
import { exactMoney, parseMoney } from '../../../../data/values/money.js';
import { useOneRequest } from '../../../../data/api/one-request.js';
import { Field, Input, Select } from '../../../../parts/forms/field.js';
import { LinkButton } from '../../../../parts/controls/button.js';
import { Section } from '../../../../parts/layout/page.js';
import type { OperatedOrganization } from '../../models.js';
import { CountField } from '../../count-field.js';
import styles from '../../operator.module.css';
import { ReasonButton } from '../../reason-button.js';

type Shown = Pick<OperatedOrganization, 'id' | 'name' | 'suspension' | 'payments_frozen'>;

/** What an operator can do with an organization. */
export function OrganizationActs({ organization }: { organization: Shown }) {
  const { id, suspension, payments_frozen } = organization;
  const log = (
    <LinkButton to="/operator/audit" search={{ of: id }}>
      What operators have done
    </LinkButton>
  );
  return (
    <Section title="Acts" actions={log}>
      <div className={styles.acts}>
        <Credit organization={organization} />
        {suspension === null ? (
          <Suspend organization={organization} />
        ) : (
          <>
            <ChangeSuspension organization={organization} now={suspension} />
            <Restore organization={organization} />
          </>
        )}
        {payments_frozen ? <CloseDispute organization={organization} /> : <OpenDispute organization={organization} />}
      </div>
    </Section>
  );
}

const at = (id: string) => ({ params: { path: { id } } });
const MEMBERS_READ = 'Its members read it in their events and the audit log.';

const NO_CREDIT: { text: string; way: 'grant' | 'take back' } = { text: '', way: 'grant' };

function Credit({ organization: { id, name } }: { organization: Shown }) {
  const [{ text, way }, setDraft] = useDraft(`credit.${id}`, NO_CREDIT);
  const typed = parseMoney(text);
  const micro = typed === undefined || typed === 0 ? undefined : way === 'grant' ? typed : -typed;
  const bodyOf = (reason: string) => ({ amount_micro: micro ?? 0, reason });
  const { send, isUnanswered } = useOneRequest<ReturnType<typeof bodyOf>>(`credit ${id}`);
  return (
    <ReasonButton
      label="Credit"
      title={titleOf(name, way, micro)}
      hint="Its members read it in the transactions."
      no="Cancel"
      isComplete={micro !== undefined}
      isUnanswered={(reason) => isUnanswered(bodyOf(reason))}
      act={(reason) => {
        const body = bodyOf(reason);
        return send(body, (headers) =>
          api.post('/v1/operator/organizations/{id}/credits', { ...at(id), body, headers }),
        ).then(() => setDraft(NO_CREDIT));
      }}
    >
      {way === 'take back' && <p>If its balance is then zero or below, its running instances are stopped.</p>}
      <Field label="What to do">
        {(tied) => (
          <Select
            {...tied}
            choices={[
              { value: 'grant', label: 'Grant credit' },
              { value: 'take back', label: 'Take credit back' },
            ]}
            value={way}
            onChoose={(chosen) => setDraft({ text, way: chosen })}
          />
        )}
      </Field>
      <Field
        name="amount_micro"
        label="Amount in dollars"
        error={
          text !== '' && micro === undefined ? 'Give dollars, with at most six digits after the point.' : undefined
        }
      >
        {(tied) => (
          <Input
            {...tied}
            required
            inputMode="decimal"
            value={text}
            onChange={({ target }) => setDraft({ text: target.value, way })}
          />
        )}
      </Field>
    </ReasonButton>
  );
}

/** Says what a credit does; an amount that is taken back is said without its sign. */
function titleOf(name: string, way: 'grant' | 'take back', micro = 0): string {
  const amount = micro === 0 ? undefined : exactMoney(Math.abs(micro));
  if (way === 'take back') return `Take ${amount ?? 'credit'} back from ${name}`;
  return amount === undefined ? `Credit ${name}` : `Credit ${name} with ${amount}`;
}

const DAY_MS = 86_400_000;
const SUSPEND_PATH = '/v1/operator/organizations/{id}/suspend';

function Suspend({ organization: { id, name } }: { organization: Shown }) {
  const [days, setDays] = useDraft<string>(`suspend.${id}`, '30');
  return (
    <ReasonButton
      label="Suspend"
      title={`Suspend ${name} and stop its instances`}
      kind="danger"
      hint={MEMBERS_READ}
      act={(reason) => api.post(SUSPEND_PATH, { ...at(id), body: { reason, keep_disks_days: Number(days) } })}
    >
      <p>
        It can neither deploy nor start nor invite. Running instances are stopped at once. Its members can still sign
        in, read, pay and destroy. Disks are kept and charged; after that time they are destroyed.
      </p>
      <DaysField label="Days for which disks are kept" days={days} setDays={setDays} />
    </ReasonButton>
  );
}

type Suspension = NonNullable<Shown['suspension']>;

function ChangeSuspension({ organization: { id, name }, now }: { organization: Shown; now: Suspension }) {
  const [typed, setTyped] = useDraft<{ days?: string }>(`change-suspension.${id}`, {});
  // A colleague can have changed it since the page was opened.
  const days = typed.days ?? String(daysOf(now));
  return (
    <ReasonButton
      label="Change the suspension"
      title={`Change for how long the disks of ${name} are kept, and why it is suspended`}
      kind="danger"
      hint={MEMBERS_READ}
      reason={now.reason}
      act={(reason) => api.post(SUSPEND_PATH, { ...at(id), body: { reason, keep_disks_days: Number(days) } })}
      onClose={() => setTyped({})}
    >
      <p>It stays suspended. After the days, its disks are destroyed; at least one day is left from now on.</p>
      <DaysField
        label="Days for which disks are kept, from the suspension on"
        days={days}
        setDays={(days) => setTyped({ days })}
      />
    </ReasonButton>
  );
}

function daysOf({ since, disks_kept_until }: Suspension): number {
  return Math.round((Date.parse(disks_kept_until) - Date.parse(since)) / DAY_MS);
}

function DaysField({ label, days, setDays }: { label: string; days: string; setDays: (days: string) => void }) {
  return <CountField name="keep_disks_days" label={label} max={3_650} value={days} onChange={setDays} />;
}

function Restore({ organization: { id, name } }: { organization: Shown }) {
  return (
    <ReasonButton
      label="Restore"
      title={`Restore ${name}`}
      hint={MEMBERS_READ}
      act={(reason) => api.post('/v1/operator/organizations/{id}/restore', { ...at(id), body: { reason } })}
    >
      <p>Everything can be started again. Nothing starts by itself.</p>
    </ReasonButton>
  );
}

const AUDIT_READ = 'Its members read it in the audit log.';

function OpenDispute({ organization: { id, name } }: { organization: Shown }) {
  return (
    <ReasonButton
      label="Open dispute"
      title={`Open a payment dispute of ${name}: it can neither deploy nor start`}
      kind="danger"
      hint={AUDIT_READ}
      act={(reason) => api.post('/v1/operator/organizations/{id}/dispute', { ...at(id), body: { reason } })}
    >
      <p>It stays so until you close the dispute. The GPUs of its stopped instances become free.</p>
    </ReasonButton>
  );
}

function CloseDispute({ organization: { id, name } }: { organization: Shown }) {
  return (
    <ReasonButton
      label="Close dispute"
      title={`Close the payment dispute of ${name}`}
      hint={AUDIT_READ}
      act={(reason) => api.delete('/v1/operator/organizations/{id}/dispute', { ...at(id), body: { reason } })}
    >
      <p>It can deploy and start again, as far as its balance allows.</p>
    </ReasonButton>
  );
}

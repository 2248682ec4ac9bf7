import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { useAct } from '../../../data/forms/act.js';
import { api } from '../../../data/api/api.js';
import { changedFields } from '../../../data/forms/changed-fields.js';
import type { WebhookEndpoint } from '../../../data/api/models.js';
import { Button, LinkButton } from '../../../parts/controls/button.js';
import { ConfirmButton } from '../../../parts/controls/confirm-button.js';
import { Dialog } from '../../../parts/controls/dialog.js';
import { ErrorBox } from '../../../parts/controls/states.js';
import { say } from '../../../parts/controls/toast.js';
import { EndpointForm, type Given } from '../endpoint-form.js';
import type { EventType } from '../event-types.js';
import { Secret } from '../secret.js';

const OLD = [['webhooks'], ['audit-log']];

const route = getRouteApi('/webhooks/$id');

/** Sends a test message; the deliveries show how it went. */
export function SendTest({ endpoint: { id, enabled } }: { endpoint: WebhookEndpoint }) {
  const send = useAct(
    () => api.post('/v1/webhook-endpoints/{id}/test', { params: { path: { id } } }),
    OLD,
    () => say('A test is on its way'),
  );
  return (
    <>
      <Button kind="main" isBusy={send.isPending} disabled={!enabled} onClick={() => send.mutate()}>
        Send a test
      </Button>
      {send.error && <ErrorBox error={send.error} />}
    </>
  );
}

/** Changes where an endpoint is and which events it gets. */
export function Change({ endpoint }: { endpoint: WebhookEndpoint }) {
  const { change: isOpen = false, ...search } = route.useSearch();
  const navigate = route.useNavigate();
  const close = () => void navigate({ search, replace: true });
  return (
    <>
      <LinkButton
        aria-haspopup="dialog"
        to="/webhooks/$id"
        params={{ id: endpoint.id }}
        search={{ ...search, change: true }}
      >
        Change
      </LinkButton>
      {isOpen && (
        <Dialog title="Change the endpoint" isOpen onClose={close}>
          <ChangeForm endpoint={endpoint} onClose={close} />
        </Dialog>
      )}
    </>
  );
}

/** Sends what was changed only: another address needs a proof of who it is, the rest does not. */
function ChangeForm({ endpoint: { id, ...shown }, onClose }: { endpoint: WebhookEndpoint; onClose: () => void }) {
  const { url, description, instance_id } = shown;
  // A filter has only types that this release knows.
  const [before] = useState<Given>({ url, description, types: shown.types as EventType[] | null, instance_id });
  const change = useAct(
    (body: Partial<Given>) => api.patch('/v1/webhook-endpoints/{id}', { params: { path: { id } }, body }),
    OLD,
    onClose,
  );
  return (
    <EndpointForm
      draft={`webhook.${id}`}
      before={before}
      verb="Change"
      isBusy={change.isPending}
      error={change.error}
      onClose={onClose}
      onSubmit={(given) => change.mutate(changedFields(before, given))}
    />
  );
}

/** Switches an endpoint off, after a question, or on. */
export function SwitchOnOrOff({ endpoint: { id, url, enabled } }: { endpoint: WebhookEndpoint }) {
  const set = (to: boolean) => () =>
    api.patch('/v1/webhook-endpoints/{id}', { params: { path: { id } }, body: { enabled: to } });
  const switchOn = useAct(set(true), OLD);
  if (enabled)
    return (
      <ConfirmButton
        label="Switch off"
        title={`Switch off ${url}, and give up its pending deliveries`}
        act={set(false)}
        old={OLD}
      >
        <p>
          It misses what happens until it is switched on again. You can replay that then, as long as events are kept.
        </p>
      </ConfirmButton>
    );
  return (
    <>
      <Button isBusy={switchOn.isPending} onClick={() => switchOn.mutate()}>
        Switch on
      </Button>
      {switchOn.error && <ErrorBox error={switchOn.error} />}
    </>
  );
}

/** Makes a new secret and shows it, this once. */
export function RotateSecret({ endpoint: { id } }: { endpoint: WebhookEndpoint }) {
  const [secret, setSecret] = useState<string>();
  const rotate = async () => {
    const answer = await api.post('/v1/webhook-endpoints/{id}/rotate-secret', { params: { path: { id } } });
    setSecret(answer.secret);
  };
  return (
    <>
      <ConfirmButton label="New secret" kind="main" title="Make a new secret for this endpoint" act={rotate} old={OLD}>
        <p>
          For 24 hours, messages are signed with both, so your program can change in between. A third one ends the
          first.
        </p>
      </ConfirmButton>
      {secret !== undefined && (
        <Secret title="The new secret" secret={secret} onClose={() => setSecret(undefined)}>
          <p>The previous one works for 24 hours.</p>
        </Secret>
      )}
    </>
  );
}

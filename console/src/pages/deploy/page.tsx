import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useLastingDraft } from '../../data/forms/draft.js';
import { offerOf } from '../../data/instances/offers.js';
import type { SshKey } from '../../data/api/models.js';
import { sshKeys } from '../../data/api/queries.js';
import { useTemplates } from '../../data/instances/templates.js';
import { OnlyFor } from '../../parts/controls/only-for.js';
import { Page } from '../../parts/layout/page.js';
import { ErrorBox, Skeleton } from '../../parts/controls/states.js';
import { Fields } from './fields.js';
import { diskOf, EMPTY_FORM, faultsOf, isFaulty, requestOf, withoutSecrets, type DeployForm } from './form.js';
import { lastKey } from './last-key.js';
import { MachineSection } from './machine.js';
import styles from './page.module.css';
import { Summary } from './summary.js';
import { TemplateSection } from './template.js';

const route = getRouteApi('/deploy');

export default function DeployPage() {
  return (
    <Page title="Deploy" lead="What do I want to run, on what, and what will it cost?">
      <OnlyFor right="change">
        <Form />
      </OnlyFor>
    </Page>
  );
}

/** Returns the key that was chosen, unless it is gone; else that of the last deploy. */
function keyOf({ sshKey, isKeyChosen }: DeployForm, keys: readonly SshKey[]): string {
  const isThere = sshKey === '' ? isKeyChosen : keys.some(({ id }) => id === sshKey);
  return isThere ? sshKey : lastKey(keys);
}

/** The template first, then the machine, then the rest. Another template or machine keeps what was typed, and so does another page. */
function Form() {
  const search = route.useSearch();
  const { template, templates, hasMore, ...known } = useTemplates(search.template);
  const keys = useQuery(sshKeys);
  const { data: offer, error, refetch } = useQuery(offerOf(search.offer));
  const [form, setForm, forget] = useLastingDraft('deploy', EMPTY_FORM, (draft) => withoutSecrets(draft, template));
  const change = (changed: Partial<DeployForm>) => setForm((before) => ({ ...before, ...changed }));
  const chosen = {
    ...form,
    disk: diskOf(form, offer?.machine.disk_available_gb),
    sshKey: keyOf(form, keys.data ?? []),
  };
  const faults = faultsOf(chosen, template);
  // Without a key nobody can ever log in: that is for a person to choose, not for an answer that has not come.
  const request = offer && template && keys.data && requestOf(chosen, offer.id, template);
  const lacksMachine = !offer && (search.offer === undefined || error !== null);
  const lacks = lacksMachine ? 'machine' : keys.isLoadingError ? 'keys' : undefined;
  if (known.isPending) return <Skeleton rows={8} />;
  return (
    <div className={styles.deploy}>
      <div>
        {known.error && <ErrorBox error={known.error} retry={known.readAgain} />}
        <TemplateSection template={template} templates={templates} hasMore={hasMore} machine={offer?.machine} />
        <MachineSection template={template} offer={offer} error={error} readAgain={() => void refetch()} />
        <Fields offer={offer} template={template} keys={keys} form={chosen} faults={faults} onChange={change} />
      </div>
      <Summary
        request={request}
        lacks={template === undefined ? 'template' : lacks}
        isWrong={isFaulty(faults)}
        onDeployed={forget}
      />
    </div>
  );
}

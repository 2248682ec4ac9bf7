import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useDraft } from '../../data/draft.js';
import { offerOf } from '../../data/offers.js';
import { sshKeys, templates } from '../../data/queries.js';
import { OnlyFor } from '../../parts/only-for.js';
import { Page } from '../../parts/page.js';
import { ErrorBox, Skeleton } from '../../parts/states.js';
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

/** The template first, then the machine, then the rest. Another template or machine keeps what was typed. */
function Form() {
  const search = route.useSearch();
  const known = useQuery(templates);
  const { data: keys = [] } = useQuery(sshKeys);
  const { data: offer, error, refetch } = useQuery(offerOf(search.offer));
  const template = known.data?.find(({ id }) => id === search.template);
  const [form, setForm] = useDraft('deploy', EMPTY_FORM, (draft) => withoutSecrets(draft, template));
  const change = (changed: Partial<DeployForm>) => setForm((before) => ({ ...before, ...changed }));
  const chosen = {
    ...form,
    disk: diskOf(form, offer?.machine.disk_available_gb),
    // Until a person chooses one, it is the key of the last deploy.
    sshKey: form.sshKey === '' && !form.isKeyChosen ? lastKey(keys) : form.sshKey,
  };
  const faults = faultsOf(chosen);
  const lacksMachine = !offer && (search.offer === undefined || error !== null);
  if (known.isPending) return <Skeleton rows={8} />;
  return (
    <div className={styles.deploy}>
      <div>
        {known.error && <ErrorBox error={known.error} retry={() => void known.refetch()} />}
        <TemplateSection template={template} templates={known.data ?? []} machine={offer?.machine} />
        <MachineSection {...{ template, offer, error }} readAgain={() => void refetch()} />
        <Fields {...{ offer, template, keys }} form={chosen} faults={faults} onChange={change} />
      </div>
      <Summary
        request={offer && template && requestOf(chosen, offer.id, template)}
        lacks={template === undefined ? 'template' : lacksMachine ? 'machine' : undefined}
        isWrong={isFaulty(faults)}
      />
    </div>
  );
}

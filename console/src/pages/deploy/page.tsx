import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../../data/api.js';
import type { Offer } from '../../data/models.js';
import { sshKeys, templates } from '../../data/queries.js';
import { memory } from '../../data/sizes.js';
import { LinkButton } from '../../parts/button.js';
import { OnlyFor } from '../../parts/only-for.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Fields } from './fields.js';
import { emptyForm, faultsOf, requestOf } from './form.js';
import { lastKey } from './last-key.js';
import styles from './page.module.css';
import { Summary } from './summary.js';

const route = getRouteApi('/deploy');

export default function DeployPage() {
  const { offer, template } = route.useSearch();
  return (
    <Page title="Deploy" lead="What do I want to run there, and what will it cost?">
      <OnlyFor right="change">
        {offer === undefined ? (
          <Empty
            title="Choose a machine first"
            action={
              <LinkButton kind="main" to="/market" search={template === undefined ? {} : { template }}>
                See what is free
              </LinkButton>
            }
          />
        ) : (
          <OnOffer key={offer} id={offer} />
        )}
      </OnlyFor>
    </Page>
  );
}

function OnOffer({ id }: { id: string }) {
  const query = useQuery({
    queryKey: ['offers', id],
    queryFn: ({ signal }) => api.get('/v1/offers/{id}', { params: { path: { id } }, signal }),
  });
  return (
    <Loaded query={query} rows={8}>
      {(offer) => <Form offer={offer} />}
    </Loaded>
  );
}

function Form({ offer }: { offer: Offer }) {
  const search = route.useSearch();
  const { data: known } = useQuery(templates);
  const { data: keys } = useQuery(sshKeys);
  const [form, setForm] = useState(() => emptyForm(offer.machine.disk_available_gb));
  const template = known?.find(({ id }) => id === search.template);
  // Until a person chooses one, it is the key of the last deploy.
  const chosen = form.sshKey === '' && !form.isKeyChosen ? { ...form, sshKey: lastKey(keys ?? []) } : form;
  const faults = faultsOf(chosen);
  return (
    <div className={styles.deploy}>
      <div>
        <p className={styles.machine}>
          {offer.num_gpus} × {offer.gpu_model ?? 'no GPU'}
          {offer.gpu_memory_mb !== null && `, ${memory(offer.gpu_memory_mb)} each`}, on {offer.machine.name}
          {offer.machine.region !== '' && `, ${offer.machine.region}`}
        </p>
        <Fields
          {...{ offer, template, faults }}
          templates={known ?? []}
          keys={keys ?? []}
          form={chosen}
          onChange={setForm}
        />
      </div>
      <Summary request={requestOf(chosen, offer.id, template)} hasTemplate={template !== undefined} />
    </div>
  );
}

import { queryOptions, useQuery } from '@tanstack/react-query';
import { api } from '../../../data/api/api.js';
import { Field, Select } from '../../../parts/forms/field.js';
import { MachineFilter } from '../machine-filter.js';
import styles from '../operator.module.css';

const models = queryOptions({
  queryKey: ['operator', 'models'],
  queryFn: async ({ signal }) =>
    (await api.get('/v1/catalog/status', { signal })).items.map(({ gpu_model }) => gpu_model),
});

interface Chosen {
  machine?: string;
  model?: string;
}

/** Chooses the offers that are shown: those of a machine, or with a GPU model. */
export function OfferFilter({ chosen, onChoose }: { chosen: Chosen; onChoose: (chosen: Chosen) => void }) {
  const { machine, model } = chosen;
  const known = useQuery(models).data ?? [];
  // Of a model of which no machine is connected, only the address tells.
  const names = model === undefined || known.includes(model) ? known : [model, ...known];
  return (
    <div className={styles.filter}>
      <Field label="GPU model">
        {(tied) => (
          <Select
            {...tied}
            choices={[{ value: '', label: 'all' }, ...names.map((value) => ({ value, label: value }))]}
            value={model ?? ''}
            onChoose={(value) => onChoose({ ...(machine && { machine }), ...(value && { model: value }) })}
          />
        )}
      </Field>
      {machine !== undefined && <MachineFilter id={machine} onTakeAway={() => onChoose({ ...(model && { model }) })} />}
    </div>
  );
}

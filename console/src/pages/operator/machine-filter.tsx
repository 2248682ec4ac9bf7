import { useQuery } from '@tanstack/react-query';
import { Field, Select } from '../../parts/forms/field.js';
import { machine } from './queries.js';

/** A list is of one machine; what is chosen instead is all of them. */
export function MachineFilter({ id, onTakeAway }: { id: string; onTakeAway: () => void }) {
  const { data } = useQuery(machine(id));
  return (
    <Field label="Machine">
      {(tied) => (
        <Select
          {...tied}
          choices={[
            { value: id, label: data?.name ?? id },
            { value: '', label: 'all' },
          ]}
          value={id}
          onChoose={(value) => value === '' && onTakeAway()}
        />
      )}
    </Field>
  );
}

import { getRouteApi } from '@tanstack/react-router';
import { changedSearch } from '../../../data/forms/changed-search.js';
import { CheckBox, Field, Select } from '../../../parts/forms/field.js';
import { FindForm } from '../find-form.js';
import { MachineFilter } from '../machine-filter.js';
import styles from '../operator.module.css';
import { OrganizationChoice } from '../organization-choice.js';
import { STATUSES, type InstancesSearch } from './search.js';

const route = getRouteApi('/operator/instances');
const CHOICES = [{ value: '' as const, label: 'any' }, ...STATUSES.map((value) => ({ value, label: value }))];

/** Chooses which instances are shown. Each row leads to those of its machine. */
export function InstanceFilters({ search }: { search: InstancesSearch }) {
  const navigate = route.useNavigate();
  const go = (changed: { [Name in keyof InstancesSearch]?: InstancesSearch[Name] | undefined }) =>
    void navigate({ search: changedSearch(search, changed) });
  return (
    <>
      <FindForm
        key={search.id ?? ''}
        label="Id of an instance"
        hint="The whole id. It finds the instance also after it was destroyed."
        value={search.id ?? ''}
        onFind={(id) => void navigate({ search: id === '' ? {} : { id } })}
      />
      <div className={styles.filter}>
        <Field label="Status">
          {(tied) => (
            <Select
              {...tied}
              choices={CHOICES}
              value={search.status ?? ''}
              onChoose={(status) => go({ status: status || undefined })}
            />
          )}
        </Field>
        <OrganizationChoice
          label="Organization"
          chosen={search.organization}
          onChoose={(organization) => go({ organization })}
        />
        {search.machine !== undefined && (
          <MachineFilter id={search.machine} onTakeAway={() => go({ machine: undefined })} />
        )}
      </div>
      <div className={styles.after}>
        <CheckBox
          label="Only those that wait for their host"
          checked={search.waiting === true}
          onChange={({ target }) => go({ waiting: target.checked || undefined })}
        />
      </div>
    </>
  );
}

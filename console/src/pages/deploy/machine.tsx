import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { changedSearch } from '../../data/forms/changed-search.js';
import { misfitOf } from '../../data/instances/fit.js';
import type { Offer, Template } from '../../data/api/models.js';
import { freeOffers, nameOfOffer, offerCounts } from '../../data/instances/offers.js';
import { LinkButton } from '../../parts/controls/button.js';
import { Field, Select } from '../../parts/forms/field.js';
import { OfferList, OfferRow } from '../../parts/market/offer-row.js';
import { Section } from '../../parts/layout/page.js';
import { Older } from '../../parts/controls/older.js';
import { Empty, ErrorBox, Skeleton } from '../../parts/controls/states.js';
import styles from './page.module.css';

const route = getRouteApi('/deploy');
const ANY = '';
/** Offers that are read at a time. */
const ROWS = 10;

interface Props {
  template: Template | undefined;
  /** The chosen offer; undefined: none is chosen, or it is not read yet. */
  offer: Offer | undefined;
  /** Why the chosen offer cannot be read. */
  error: Error | null;
  /** Reads the chosen offer again. */
  readAgain: () => void;
}

/** On which machine: the one that is chosen, or those that are free, what fits the template first. */
export function MachineSection({ template, offer, error, readAgain }: Props) {
  const { offer: chosen } = route.useSearch();
  const section = useFocusWhenChanged(chosen);
  return (
    <Section title="Machine">
      <div ref={section} tabIndex={-1} className={styles.machine}>
        {chosen === undefined && <FreeOffers template={template} />}
        {chosen !== undefined && (
          <>
            {error && <ErrorBox error={error} retry={readAgain} />}
            {!offer && !error && <Skeleton rows={2} />}
            {(offer ?? error) && <Chosen offer={offer} template={template} />}
          </>
        )}
      </div>
    </Section>
  );
}

function Chosen({ offer, template }: Pick<Props, 'offer' | 'template'>) {
  const another = (
    <LinkButton to="/deploy" search={(before) => changedSearch(before, { offer: undefined })}>
      Choose another machine
    </LinkButton>
  );
  if (!offer) return another;
  return (
    <OfferList>
      <OfferRow offer={offer} misfit={template && misfitOf(template, offer.machine)} heading="h3">
        {another}
      </OfferRow>
    </OfferList>
  );
}

function FreeOffers({ template }: { template: Template | undefined }) {
  const { gpu } = route.useSearch();
  const ofTemplate = template === undefined ? {} : { template_id: template.id };
  const query = useInfiniteQuery(freeOffers({ ...ofTemplate, ...(gpu === undefined ? {} : { gpu_model: gpu }) }, ROWS));
  const found = query.data?.pages.flatMap(({ items }) => items) ?? [];
  return (
    <>
      <GpuField gpu={gpu} />
      {query.error && <ErrorBox error={query.error} retry={() => void query.refetch()} />}
      {query.isPending && <Skeleton rows={6} />}
      {query.isSuccess && found.length === 0 && (
        <Empty title={gpu === undefined ? 'Nothing is free at present' : `No ${gpu} is free at present`}>
          What others give back appears here by itself.
        </Empty>
      )}
      {found.length > 0 && (
        <OfferList>
          {found.map((offer) => (
            <FreeOffer key={offer.id} offer={offer} misfit={template && misfitOf(template, offer.machine)} />
          ))}
        </OfferList>
      )}
      <Older query={query}>Show more machines</Older>
    </>
  );
}

function FreeOffer({ offer, misfit }: { offer: Offer; misfit: string | undefined }) {
  return (
    <OfferRow offer={offer} misfit={misfit} heading="h3">
      {misfit === undefined && (
        <LinkButton
          to="/deploy"
          search={(before) => changedSearch(before, { offer: offer.id })}
          aria-label={`Choose ${nameOfOffer(offer)} on ${offer.machine.name}`}
        >
          Choose
        </LinkButton>
      )}
    </OfferRow>
  );
}

/** Which GPUs are looked for. */
function GpuField({ gpu }: { gpu: string | undefined }) {
  const navigate = route.useNavigate();
  const { data } = useQuery(offerCounts({}));
  const models = data?.gpu_models ?? [];
  const known = models.map(({ value, offers }) => ({ value, label: `${value} (${offers})` }));
  const isKnown = gpu === undefined || models.some(({ value }) => value === gpu);
  return (
    <div className={styles.fields}>
      <Field label="GPU">
        {(tied) => (
          <Select
            {...tied}
            value={gpu ?? ANY}
            choices={[
              { value: ANY, label: 'Any' },
              ...known,
              ...(isKnown ? [] : [{ value: gpu, label: `${gpu} (0)` }]),
            ]}
            onChoose={(value) =>
              void navigate({ search: (before) => changedSearch(before, { gpu: value || undefined }) })
            }
          />
        )}
      </Field>
    </div>
  );
}

/** Returns what to hold to an element, which takes the focus when a value changes: what had it is gone then. */
function useFocusWhenChanged(value: string | undefined) {
  const element = useRef<HTMLDivElement>(null);
  const before = useRef(value);
  useEffect(() => {
    if (before.current === value) return;
    before.current = value;
    element.current?.focus();
  }, [value]);
  return element;
}

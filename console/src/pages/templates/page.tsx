import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { api } from '../../data/api/api.js';
import { changedSearch } from '../../data/forms/changed-search.js';
import type { Template } from '../../data/api/models.js';
import { inPages, itemsOf } from '../../data/api/pages.js';
import { me } from '../../data/api/queries.js';
import { may } from '../../data/api/rights.js';
import { WordsInput } from '../../parts/forms/address-input.js';
import { LinkButton } from '../../parts/controls/button.js';
import { Field } from '../../parts/forms/field.js';
import { Older } from '../../parts/controls/older.js';
import { Page } from '../../parts/layout/page.js';
import { Empty, Loaded } from '../../parts/controls/states.js';
import { TabLinks } from '../../parts/layout/tab-links.js';
import styles from './page.module.css';
import { templatesIn } from './queries.js';
import { LONGEST_WORDS, TABS, type Tab } from './search.js';
import { TemplateRow } from './template-row.js';

const route = getRouteApi('/templates');
const TITLES: Readonly<Record<Tab, string>> = {
  recommended: 'Recommended',
  organization: 'Your organization',
  system: "The operator's",
  public: 'Public',
};

/** Those that the organization has made, also those that it has published, and that have some words in them. */
const ownTemplates = (words: string) =>
  inPages(['templates', 'list', 'own', words], (page, signal) => {
    const filter = { tab: 'own' as const, ...(words === '' ? {} : { words }) };
    return api.get('/v1/templates', { params: { query: { ...filter, ...page } }, signal });
  });

export default function TemplatesPage() {
  const { tab, words: typed = '' } = route.useSearch();
  const words = typed.trim();
  const navigate = route.useNavigate();
  const query = useInfiniteQuery(tab === 'organization' ? ownTemplates(words) : templatesIn(tab, words));
  const mayChange = may(useQuery(me).data, 'change');
  const tabs = [undefined, ...TABS].map((each) => ({
    title: each === undefined ? 'All' : TITLES[each],
    isActive: each === tab,
    to: '/templates' as const,
    search: each === undefined ? {} : { tab: each },
  }));
  return (
    <Page
      title="Templates"
      lead="What can run on a machine? A template is an image with everything that it needs to run."
      actions={
        mayChange && (
          <LinkButton kind="main" to="/templates/new">
            New template
          </LinkButton>
        )
      }
    >
      <TabLinks label="Templates" tabs={tabs} />
      <div className={styles.words}>
        <Field label="Find">
          {(tied) => (
            <WordsInput
              {...tied}
              maxLength={LONGEST_WORDS}
              placeholder="a name or an image"
              value={words}
              onWrite={(words, replace) =>
                void navigate({ search: (before) => changedSearch(before, { words }), replace })
              }
            />
          )}
        </Field>
      </div>
      <Loaded query={query} rows={6}>
        {(list) => <List items={itemsOf(list)} tab={tab} words={words} mayChange={mayChange} />}
      </Loaded>
      <Older query={query}>Show more</Older>
    </Page>
  );
}

interface ListProps {
  items: readonly Template[];
  tab: Tab | undefined;
  words: string;
  mayChange: boolean;
}

function List({ items, tab, words, mayChange }: ListProps) {
  if (items.length === 0) return <NoTemplates tab={tab} words={words} mayChange={mayChange} />;
  return (
    <ul className={styles.list}>
      {items.map((item) => (
        <TemplateRow key={item.id} template={item} />
      ))}
    </ul>
  );
}

function NoTemplates({ tab, words, mayChange }: Omit<ListProps, 'items'>) {
  const toAll = (
    <LinkButton to="/templates" search={{}}>
      Show all templates
    </LinkButton>
  );
  if (words !== '') return <Empty title={`No template here has “${words}” in it`} action={toAll} />;
  if (tab === 'organization')
    return (
      <Empty
        title="Your organization has no templates"
        action={mayChange ? <LinkButton to="/templates/new">Make the first one</LinkButton> : toAll}
      >
        {mayChange
          ? 'Make one from an image, or duplicate a template and change it.'
          : 'Its members make them, for themselves or for everybody.'}
      </Empty>
    );
  return (
    <Empty title="There are no templates here" action={tab !== undefined && toAll}>
      The operator, and organizations that publish theirs, make what stands here.
    </Empty>
  );
}

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Template } from '../../data/models.js';
import { itemsOf } from '../../data/pages.js';
import { me } from '../../data/queries.js';
import { may } from '../../data/rights.js';
import { LinkButton } from '../../parts/button.js';
import { Field, Input } from '../../parts/field.js';
import { Older } from '../../parts/older.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { TabLinks } from '../../parts/tab-links.js';
import styles from './page.module.css';
import { templatesIn } from './queries.js';
import { LONGEST_WORDS, TABS, type Tab } from './search.js';
import { TemplateRow } from './template-row.js';

const route = getRouteApi('/templates');
const TITLES: Readonly<Record<Tab, string>> = {
  ...{ recommended: 'Recommended', organization: 'Your organization', system: "The operator's", public: 'Public' },
};

export default function TemplatesPage() {
  const { tab, words = '' } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useInfiniteQuery(templatesIn(tab, words.trim()));
  const mayChange = may(useQuery(me).data, 'change');
  const tabs = [undefined, ...TABS].map((each) => ({
    ...{ title: each === undefined ? 'All' : TITLES[each], isActive: each === tab, to: '/templates' as const },
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
            <Input
              {...tied}
              type="search"
              maxLength={LONGEST_WORDS}
              placeholder="a name or an image"
              value={words}
              onChange={({ target }) =>
                // The browser's back goes over words, not over letters.
                void navigate({ search: (before) => ({ ...before, words: target.value }), replace: words !== '' })
              }
            />
          )}
        </Field>
      </div>
      <Loaded query={query} rows={6}>
        {(list) => <List items={itemsOf(list)} {...{ tab, words, mayChange }} />}
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
  if (items.length === 0) return <NoTemplates {...{ tab, words, mayChange }} />;
  return (
    <ul className={styles.list}>
      {items.map((item) => (
        <TemplateRow key={item.id} template={item} />
      ))}
    </ul>
  );
}

function NoTemplates({ tab, words, mayChange }: Omit<ListProps, 'items'>) {
  if (words !== '')
    return (
      <Empty
        title={`No template here has “${words}” in it`}
        action={
          <LinkButton to="/templates" search={{}}>
            Show all templates
          </LinkButton>
        }
      />
    );
  if (tab === 'organization' && mayChange)
    return (
      <Empty
        title="Your organization has no templates"
        action={<LinkButton to="/templates/new">Make the first one</LinkButton>}
      >
        Make one from an image, or duplicate a template and change it.
      </Empty>
    );
  return (
    <Empty
      title="There are no templates here"
      action={
        tab !== undefined && (
          <LinkButton to="/templates" search={{}}>
            Show all templates
          </LinkButton>
        )
      }
    >
      The operator, and organizations that publish theirs, make what stands here.
    </Empty>
  );
}

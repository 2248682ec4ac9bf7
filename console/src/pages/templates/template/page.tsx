import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useAct } from '../../../data/forms/act.js';
import { api } from '../../../data/api/api.js';
import type { Template } from '../../../data/api/models.js';
import { me } from '../../../data/api/queries.js';
import { may } from '../../../data/api/rights.js';
import { Button, LinkButton } from '../../../parts/controls/button.js';
import { ConfirmButton } from '../../../parts/controls/confirm-button.js';
import { Markdown } from '../../../parts/values/markdown.js';
import { Page, Section } from '../../../parts/layout/page.js';
import { ErrorBox, Loaded, Notice } from '../../../parts/controls/states.js';
import { say } from '../../../parts/controls/toast.js';
import { template as templateQuery } from '../queries.js';
import { TemplateFacts } from './template-facts.js';

const route = getRouteApi('/templates/$id');

export default function TemplatePage() {
  const { id } = route.useParams();
  const query = useQuery(templateQuery(id));
  if (query.data) return <TemplateView template={query.data} />;
  return (
    <Page title="Template">
      <Loaded query={query} rows={8}>
        {() => null}
      </Loaded>
    </Page>
  );
}

function TemplateView({ template }: { template: Template }) {
  const navigate = useNavigate();
  const duplicating = useAct(
    () => api.post('/v1/templates/{id}/duplicate', { params: { path: { id: template.id } } }),
    [['templates']],
    (copy: Template) => {
      say('This is your copy: change what you want');
      void navigate({ to: '/templates/$id/edit', params: { id: copy.id } });
    },
  );
  const mayChange = may(useQuery(me).data, 'change');
  return (
    <Page
      title={template.name}
      lead={template.description || undefined}
      actions={
        <>
          {mayChange && (
            <Button isBusy={duplicating.isPending} onClick={() => duplicating.mutate()}>
              Duplicate
            </Button>
          )}
          {mayChange && <OwnActs template={template} />}
          {!template.coming_soon && mayChange && (
            <LinkButton kind="main" to="/deploy" search={{ template: template.id }}>
              Deploy it
            </LinkButton>
          )}
        </>
      }
    >
      {duplicating.error && <ErrorBox error={duplicating.error} />}
      {template.coming_soon && <Notice>The operator announces this template: it cannot be deployed yet.</Notice>}
      <TemplateFacts template={template} />
      {template.readme !== null && template.readme.trim() !== '' && (
        <Section title="Readme">
          <Markdown text={template.readme} />
        </Section>
      )}
    </Page>
  );
}

/** What only the organization may do that has made it. */
function OwnActs({ template: { id, name, is_own } }: { template: Template }) {
  const navigate = useNavigate();
  if (!is_own) return null;
  return (
    <>
      <LinkButton to="/templates/$id/edit" params={{ id }}>
        Edit
      </LinkButton>
      <ConfirmButton
        label="Deactivate"
        title={`Deactivate ${name}`}
        act={() => api.delete('/v1/templates/{id}', { params: { path: { id } } })}
        old={[['templates', 'list']]}
        onDone={() => {
          say(`${name} is deactivated`);
          void navigate({ to: '/templates', search: { tab: 'organization' }, replace: true });
        }}
      >
        <p>Nobody can deploy it any more, and nobody can bring it back. Its instances go on.</p>
      </ConfirmButton>
    </>
  );
}

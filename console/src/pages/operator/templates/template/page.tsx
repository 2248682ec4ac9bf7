import { queryOptions, useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../../../../data/api/api.js';
import { changedFields } from '../../../../data/forms/changed-fields.js';
import type { Template } from '../../../../data/api/models.js';
import { Page } from '../../../../parts/layout/page.js';
import { Loaded } from '../../../../parts/controls/states.js';
import { contentOf, draftOf } from '../../../../parts/template-editor/draft.js';
import { TemplateForm } from '../../../../parts/template-editor/template-form.js';
import { Withdraw } from '../withdraw.js';

const route = getRouteApi('/operator/templates/$id');
const LIST = '/operator/templates';

const systemTemplate = (id: string) =>
  queryOptions({
    queryKey: ['operator', 'templates', 'one', id],
    queryFn: ({ signal }) => api.get('/v1/operator/templates/{id}', { params: { path: { id } }, signal }),
  });

export default function SystemTemplatePage() {
  const { id } = route.useParams();
  const query = useQuery(systemTemplate(id));
  if (query.data) return <Editor key={id} template={query.data} />;
  return (
    <Page title="System template">
      <Loaded query={query} rows={8}>
        {() => null}
      </Loaded>
    </Page>
  );
}

function Editor({ template }: { template: Template }) {
  // Others can change it while the form is open: what is changed here is told from how it was.
  const [before] = useState(template);
  const { id, name } = before;
  const navigate = useNavigate();
  const goBack = () => void navigate({ to: LIST, replace: true });
  return (
    <Page
      title={name}
      lead="All renters see it, and can deploy it. Instances keep it as it was when they were deployed."
      actions={<Withdraw template={template} onDone={goBack} />}
    >
      <TemplateForm
        template={before}
        owner="operator"
        verb="Save the template"
        save={(content, { recommended, coming_soon }) => {
          const was = { ...contentOf(draftOf(before), before), ...marksOf(before) };
          const body = changedFields(was, { ...content, recommended, coming_soon });
          return api.patch('/v1/operator/templates/{id}', { params: { path: { id } }, body });
        }}
        onSaved={goBack}
        back={{ to: LIST }}
      />
    </Page>
  );
}

function marksOf({ recommended, coming_soon }: Template) {
  return { recommended, coming_soon };
}

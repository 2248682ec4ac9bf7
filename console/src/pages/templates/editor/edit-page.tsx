import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../../../data/api/api.js';
import { changedFields } from '../../../data/forms/changed-fields.js';
import type { Template } from '../../../data/api/models.js';
import { OnlyFor } from '../../../parts/controls/only-for.js';
import { Page } from '../../../parts/layout/page.js';
import { Loaded } from '../../../parts/controls/states.js';
import { template as templateQuery } from '../queries.js';
import { contentOf, draftOf } from '../../../parts/template-editor/draft.js';
import { TemplateForm } from '../../../parts/template-editor/template-form.js';

const route = getRouteApi('/templates/$id/edit');

export default function EditTemplatePage() {
  const { id } = route.useParams();
  const query = useQuery(templateQuery(id));
  if (query.data) return <Editor key={id} template={query.data} />;
  return (
    <Page title="Edit a template">
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
  return (
    <Page title={`Edit ${name}`} lead="Instances keep the template as it was when they were deployed.">
      <OnlyFor right="change">
        <TemplateForm
          template={before}
          owner="organization"
          verb="Save the template"
          save={(content, { visibility }) => {
            const first = draftOf(before);
            const was = { ...contentOf(first, before), visibility: first.visibility };
            const body = changedFields(was, { ...content, visibility });
            return api.patch('/v1/templates/{id}', { params: { path: { id } }, body });
          }}
          onSaved={() => void navigate({ to: '/templates/$id', params: { id } })}
          back={{ to: '/templates/$id', params: { id } }}
        />
      </OnlyFor>
    </Page>
  );
}

import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { api } from '../../../data/api.js';
import { Page } from '../../../parts/page.js';
import { Loaded } from '../../../parts/states.js';
import { template as templateQuery } from '../queries.js';
import { TemplateForm } from './template-form.js';

const route = getRouteApi('/templates/$id/edit');

export default function EditTemplatePage() {
  const { id } = route.useParams();
  const navigate = useNavigate();
  const query = useQuery(templateQuery(id));
  return (
    <Loaded query={query} rows={8}>
      {(template) => (
        <Page title={`Edit ${template.name}`} lead="Instances keep the template as it was when they were deployed.">
          <TemplateForm
            key={id}
            template={template}
            verb="Save the template"
            save={(body) => api.patch('/v1/templates/{id}', { params: { path: { id } }, body })}
            onSaved={() => void navigate({ to: '/templates/$id', params: { id } })}
          />
        </Page>
      )}
    </Loaded>
  );
}

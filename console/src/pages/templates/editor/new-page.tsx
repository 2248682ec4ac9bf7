import { useNavigate } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import { OnlyFor } from '../../../parts/controls/only-for.js';
import { Page } from '../../../parts/layout/page.js';
import { TemplateForm } from '../../../parts/template-editor/template-form.js';

export default function NewTemplatePage() {
  const navigate = useNavigate();
  return (
    <Page title="New template" lead="What is to run, and what does it need?">
      <OnlyFor right="change">
        <TemplateForm
          owner="organization"
          verb="Create the template"
          save={(content, { visibility }) => api.post('/v1/templates', { body: { ...content, visibility } })}
          onSaved={({ id }) => void navigate({ to: '/templates/$id', params: { id }, replace: true })}
          back={{ to: '/templates' }}
        />
      </OnlyFor>
    </Page>
  );
}

import { useNavigate } from '@tanstack/react-router';
import { api } from '../../../data/api.js';
import { OnlyFor } from '../../../parts/only-for.js';
import { Page } from '../../../parts/page.js';
import { TemplateForm } from './template-form.js';

export default function NewTemplatePage() {
  const navigate = useNavigate();
  return (
    <Page title="New template" lead="What is to run, and what does it need?">
      <OnlyFor right="change">
        <TemplateForm
          verb="Create the template"
          save={(body) => api.post('/v1/templates', { body })}
          onSaved={({ id }) => void navigate({ to: '/templates/$id', params: { id }, replace: true })}
        />
      </OnlyFor>
    </Page>
  );
}

import { useNavigate } from '@tanstack/react-router';
import { api } from '../../../../data/api/api.js';
import { Page } from '../../../../parts/layout/page.js';
import { TemplateForm } from '../../../../parts/template-editor/template-form.js';

export default function NewSystemTemplatePage() {
  const navigate = useNavigate();
  return (
    <Page title="New system template" lead="All renters see it, and can deploy it.">
      <TemplateForm
        owner="operator"
        verb="Create the template"
        save={(content, { recommended, coming_soon }) =>
          api.post('/v1/operator/templates', { body: { ...content, recommended, coming_soon } })
        }
        onSaved={() => void navigate({ to: '/operator/templates', replace: true })}
        back={{ to: '/operator/templates' }}
      />
    </Page>
  );
}

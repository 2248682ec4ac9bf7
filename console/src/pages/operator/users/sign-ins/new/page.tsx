import { api } from '../../../../../data/api/api.js';
import { Page } from '../../../../../parts/layout/page.js';
import { bodyOf } from '../draft.js';
import { SignInForm } from '../sign-in-form.js';

export default function NewSignInPage() {
  return (
    <Page title="Add a company’s sign-in" lead="Its people then sign in here with their accounts at work.">
      <SignInForm
        verb="Add the company"
        save={async (draft, client_secret) => {
          const path = { id: draft.id.trim() };
          // The same request replaces one that exists: nobody who adds a company means that.
          const { items } = await api.get('/v1/operator/issuers', { params: { query: { limit: 100 } } });
          if (items.some(({ id }) => id === path.id))
            throw new Error(`“${path.id}” is the word of another company: choose another one, or change that company.`);
          return api.put('/v1/operator/issuers/{id}', { params: { path }, body: { ...bodyOf(draft), client_secret } });
        }}
      />
    </Page>
  );
}

import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';

export default function ProfilePage() {
  return (
    <Page title="Account" lead="Who am I, and where am I signed in?">
      <Empty title="This page is not made yet" action={<a href="/docs">The API has it already</a>} />
    </Page>
  );
}

import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';

export default function TeamPage() {
  return (
    <Page title="Team" lead="Who may do what, and who has done what?">
      <Empty title="This page is not made yet" action={<a href="/docs">The API has it already</a>} />
    </Page>
  );
}

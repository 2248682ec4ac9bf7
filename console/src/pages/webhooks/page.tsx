import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';

export default function WebhooksPage() {
  return (
    <Page title="Webhooks" lead="Where are events sent, and have they arrived?">
      <Empty title="This page is not made yet" action={<a href="/docs">The API has it already</a>} />
    </Page>
  );
}

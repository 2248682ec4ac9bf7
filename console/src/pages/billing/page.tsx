import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';

export default function BillingPage() {
  return (
    <Page title="Billing" lead="Where did the money go, and when does it end?">
      <Empty title="This page is not made yet" action={<a href="/docs">The API has it already</a>} />
    </Page>
  );
}

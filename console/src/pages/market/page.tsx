import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';

export default function MarketPage() {
  return (
    <Page title="Market" lead="What can I rent for this?">
      <Empty title="This page is not made yet" action={<a href="/docs">The API has it already</a>} />
    </Page>
  );
}

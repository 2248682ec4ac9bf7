import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';

export default function KeysPage() {
  return (
    <Page title="Keys" lead="Who and what may act for me?">
      <Empty title="This page is not made yet" action={<a href="/docs">The API has it already</a>} />
    </Page>
  );
}

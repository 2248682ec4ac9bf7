import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';

export default function OperatorPage() {
  return (
    <Page title="Operator" lead="What needs an act now?">
      <Empty title="This page is not made yet" action={<a href="/docs">The API has it already</a>} />
    </Page>
  );
}

import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';

export default function TemplatesPage() {
  return (
    <Page title="Templates" lead="What can run on a machine?">
      <Empty title="This page is not made yet" action={<a href="/docs">The API has it already</a>} />
    </Page>
  );
}

import { Page } from '../../parts/layout/page.js';
import { Empty } from '../../parts/controls/states.js';
import { NewOrganization } from './organization.js';

/** What is shown to those who belong to no organization, at the address of every page that shows what belongs to one. */
export default function NoOrganizationPage() {
  return (
    <Page title="No organization">
      <Empty title="You belong to no organization" action={<NewOrganization />}>
        Instances and money belong to an organization. Make one, or ask an admin of one for an invitation.
      </Empty>
    </Page>
  );
}

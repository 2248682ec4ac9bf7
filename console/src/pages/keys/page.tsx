import { Page } from '../../parts/layout/page.js';
import { ApiKeys } from './api-keys.js';
import { SshKeys } from './ssh-keys.js';

export default function KeysPage() {
  return (
    <Page title="Keys" lead="Who and what may act for me?">
      <SshKeys />
      <ApiKeys />
    </Page>
  );
}

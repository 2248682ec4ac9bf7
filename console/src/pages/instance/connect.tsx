import { onlyKey } from '../../../../client/text/ssh-keys.js';
import { sshCommand, vsCodeLink, webAddress } from '../../data/instances/instances.js';
import type { Instance } from '../../data/api/models.js';
import { buttonClass } from '../../parts/controls/button.js';
import { CopyButton, CopyLine } from '../../parts/controls/copy.js';
import { Section } from '../../parts/layout/page.js';
import { Ago } from '../../parts/values/time.js';
import styles from './page.module.css';
import { ReplaceAccess, Replacement } from './replace-access.js';

/** How one reaches the instance: SSH, an editor, and what its template serves. */
export function Connect({ instance, mayChange }: { instance: Instance; mayChange: boolean }) {
  const { ssh_ready_at, ssh_host, ssh_port, ssh_host_key, ssh_key_fingerprint, access_token, status, template } =
    instance;
  const command = sshCommand(instance);
  const isReplaceable = mayChange && (status === 'running' || status === 'stopped');
  if (status === 'destroying' || status === 'destroyed') return null;
  return (
    <Section title="Connect" actions={command !== undefined && <Answered at={ssh_ready_at} />}>
      <div className={styles.connect}>
        {command === undefined ? (
          <p className={styles.muted}>The address comes when the instance runs.</p>
        ) : (
          <CopyLine label="SSH command" text={command} />
        )}
        {command !== undefined && ssh_key_fingerprint !== null && <KeyThatFits fingerprint={ssh_key_fingerprint} />}
        <div className={styles.links}>
          <OpenLink href={vsCodeLink(instance)}>Open in VS Code</OpenLink>
          <OpenLink href={webAddress(instance.jupyter_url)}>Open JupyterLab</OpenLink>
          <OpenLink href={webAddress(instance.open_url)}>
            {template.ports.find(({ open_button }) => open_button)?.label || 'Open'}
          </OpenLink>
          {ssh_host_key !== null && ssh_host !== null && (
            <CopyButton label="Copy the line for known_hosts" text={`[${ssh_host}]:${ssh_port} ${ssh_host_key}`} />
          )}
          {access_token !== null && <CopyButton label="Copy the access token" text={access_token} />}
          {isReplaceable && <ReplaceAccess instance={instance} />}
        </div>
        <Replacement state={instance.access_replacement} />
      </div>
    </Section>
  );
}

/** Which SSH key logs in, for whom ssh has refused with `Permission denied (publickey)`. */
function KeyThatFits({ fingerprint }: { fingerprint: string }) {
  return (
    <p className={styles.muted}>
      {onlyKey(fingerprint)} If SSH says <code>Permission denied (publickey)</code>, your computer offers another key:{' '}
      <code>ssh-add -l</code> and <code>ssh-keygen -lf ~/.ssh/id_ed25519.pub</code> show yours. Use the right one with{' '}
      <code>ssh -i</code>, or replace the key here.
    </p>
  );
}

/** Whether SSH has answered, and since when. */
function Answered({ at }: { at: string | null }) {
  return (
    <p className={styles.muted}>
      {at === null ? (
        'SSH has not answered yet.'
      ) : (
        <>
          SSH answered <Ago at={at} />.
        </>
      )}
    </p>
  );
}

/** A link that leaves the console. What it leads to learns nothing of the page. */
function OpenLink({ href, children }: { href: string | undefined; children: string }) {
  if (href === undefined) return null;
  return (
    <a className={buttonClass()} href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import type { MailSettings } from '../../data/api/models.js';
import { mailSettings } from '../../data/api/queries.js';
import { CheckBox } from '../../parts/forms/field.js';
import { Section } from '../../parts/layout/page.js';
import { ErrorBox, Loaded, Notice } from '../../parts/controls/states.js';
import styles from './page.module.css';

type Choice = Exclude<keyof MailSettings, 'sends_mail' | 'security'>;

const CHOICES: Readonly<Record<Choice, string>> = {
  low_balance: 'A balance lasts less than 24 hours',
  disks: 'Disks are destroyed soon because nobody has paid',
  money: 'Payments, and instances that were stopped for lack of balance',
  caps: 'A cap is used up to 50, 80 or 100 percent',
  notices: 'The operator says something about a machine of my instances',
  invites: 'Somebody invites me to an organization',
};

/** Which mails the user gets. A choice counts at once. */
export function Mails() {
  const query = useQuery(mailSettings);
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (changed: Partial<Record<Choice, boolean>>) => api.patch('/v1/me/mail', { body: changed }),
    onSuccess: (settings) => queries.setQueryData(mailSettings.queryKey, settings),
  });
  return (
    <Section title="Mails">
      <Loaded query={query} rows={5}>
        {(settings) => (
          <>
            {!settings.sends_mail && (
              <Notice>
                <p>This control plane sends no mail: the choices count once its operator sets a mail server up.</p>
              </Notice>
            )}
            {(Object.keys(CHOICES) as Choice[]).map((name) => (
              <CheckBox
                key={name}
                label={CHOICES[name]}
                checked={
                  change.variables?.[name] !== undefined && change.isPending ? change.variables[name] : settings[name]
                }
                onChange={({ target }) => change.mutate({ [name]: target.checked })}
              />
            ))}
            <p className={styles.weak}>Sign-ins from new addresses are always mailed.</p>
            {change.error && <ErrorBox error={change.error} />}
          </>
        )}
      </Loaded>
    </Section>
  );
}

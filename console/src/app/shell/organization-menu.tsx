import { useRouterState } from '@tanstack/react-router';
import { api, isSignedOut } from '../../data/api/api.js';
import { showExactTimes, useExactTimes } from '../../data/values/exact-times.js';
import type { Me } from '../../data/api/models.js';
import { chooseOrganization } from '../../data/api/organization.js';
import { Menu, MenuChoice, MenuItem, MenuLine, MenuLink } from '../../parts/controls/menu.js';
import { sayFailed } from '../../parts/controls/toast.js';
import { leaveSignedOut } from '../leaving.js';
import { isForOperators, OPERATOR_PAGES, PAGES } from '../navigation.js';
import styles from './organization-menu.module.css';

/** Ends the session, and leaves. It has ended, too, if another tab has ended it. */
async function signOut(): Promise<void> {
  try {
    await api.post('/v1/auth/sign-out');
  } catch (error) {
    if (!isSignedOut(error)) {
      const why = error instanceof Error ? error.message : String(error);
      return sayFailed(`The sign-out has failed, and you may still be signed in: ${why}`, () => void signOut());
    }
  }
  leaveSignedOut();
}

/** The organization for which one acts, the others, and the pages that have no place in the bar of a phone. */
export function OrganizationMenu({ me }: { me: Me }) {
  const { active_organization_id: active, memberships } = me;
  const isExact = useExactTimes();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // While a page for operators is shown, the bar of a phone has others than these.
  const pages = isForOperators(path) ? PAGES : PAGES.slice(4);
  const chosen = memberships.find(({ organization_id }) => organization_id === active);
  const choices = memberships.map(({ organization_id, name, role }) => ({
    value: organization_id,
    label: `${name} (${role})`,
  }));
  return (
    <Menu label={<span className={styles.name}>{chosen?.name ?? 'No organization'}</span>}>
      <MenuChoice label="Organization" value={active ?? undefined} choices={choices} onChoose={chooseOrganization} />
      <MenuLine />
      {pages.map(({ to, title }) => (
        <MenuLink key={to} to={to}>
          {title}
        </MenuLink>
      ))}
      {me.user.is_operator && (
        <>
          <MenuLine />
          {OPERATOR_PAGES.map(({ to, title }) => (
            <MenuLink key={to} to={to}>
              Operator: {title}
            </MenuLink>
          ))}
        </>
      )}
      <MenuLine />
      <MenuItem onClick={() => showExactTimes(!isExact)}>
        {isExact ? 'Show times as people say them' : 'Show exact times'}
      </MenuItem>
      <MenuItem onClick={() => void signOut()}>Sign out</MenuItem>
    </Menu>
  );
}

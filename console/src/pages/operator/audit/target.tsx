import { Link, type LinkProps } from '@tanstack/react-router';
import { InstanceLink } from '../links.js';
import type { AuditEntry } from '../models.js';

/** What an act was done to: it leads to the page of it, where it has one. */
export function Target({ entry: { action, subject, details } }: { entry: AuditEntry }) {
  const [kind = ''] = action.split('.');
  if (kind === 'instance') return <InstanceLink id={subject} />;
  const page = pageOf(kind, subject, details);
  if (page === undefined) return <code>{subject}</code>;
  return (
    <Link {...page}>
      <code>{subject}</code>
    </Link>
  );
}

/** Returns the page of what an act of a kind is done to. Templates can be those of an organization, which have no page here. */
function pageOf(kind: string, id: string, details: Record<string, unknown>): LinkProps | undefined {
  switch (kind) {
    case 'machine':
      return { to: '/operator/machines/$id', params: { id } };
    case 'organization':
    case 'dispute':
      return { to: '/operator/organizations/$id', params: { id } };
    case 'issuer':
      return { to: '/operator/users/sign-ins/$id', params: { id } };
    case 'user':
    case 'operator':
      return typeof details['email'] === 'string'
        ? { to: '/operator/users', search: { email: details['email'] } }
        : undefined;
    default:
      return undefined;
  }
}

import type { ReactNode } from 'react';
import { useMay } from '../../data/api/rights.js';
import { LinkButton } from './button.js';
import { Empty } from './states.js';

const LACKS = {
  read: { title: 'Your role sees only money', to: '/billing', verb: 'Go to billing' },
  change: { title: 'Your role only reads', to: '/team', verb: 'See your role' },
} as const;

/** Shows something only to those who have a right, and says to others that they lack it. */
export function OnlyFor({ right, children }: { right: keyof typeof LACKS; children: ReactNode }) {
  const { title, to, verb } = LACKS[right];
  if (useMay(right)) return children;
  return (
    <Empty title={title} action={<LinkButton to={to}>{verb}</LinkButton>}>
      An admin of the organization can give you another role.
    </Empty>
  );
}

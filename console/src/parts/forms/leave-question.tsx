import { useBlocker } from '@tanstack/react-router';
import { isGivenUp } from '../../data/api/kept-drafts.js';
import { Confirm } from '../controls/dialog.js';

interface Props {
  /** What would be left as it was, such as `template`. */
  what: string;
  /** Tells whether something of it was changed and not saved. */
  isDirty: () => boolean;
}

/** Asks before what was typed into a form is lost: when its reader goes to another page or tab, or leaves the console. */
export function LeaveQuestion({ what, isDirty }: Props) {
  const blocker = useBlocker({
    shouldBlockFn: isDirty,
    // Who is signed out must not stay on a private page.
    enableBeforeUnload: () => !isGivenUp() && isDirty(),
    withResolver: true,
  });
  return (
    <Confirm
      title={`Leave without saving the ${what}`}
      verb="Leave"
      isOpen={blocker.status === 'blocked'}
      onConfirm={() => blocker.proceed?.()}
      onClose={() => blocker.reset?.()}
    >
      <p>What you have changed here is lost then.</p>
    </Confirm>
  );
}

import { useQuery } from '@tanstack/react-query';
import { organization } from '../../data/api/queries.js';
import { Button } from '../../parts/controls/button.js';
import { CopyLine } from '../../parts/controls/copy.js';
import { DialogActions } from '../../parts/controls/dialog.js';
import { Loaded } from '../../parts/controls/states.js';
import styles from './page.module.css';

/** Says how money is added where the marketplace has no payment provider: an operator grants credit, by the id of the organization. */
export function NoPayments({ close }: { close: () => void }) {
  const query = useQuery(organization);
  return (
    <div className={styles.form}>
      <p>This marketplace takes no payments by card. Its operator adds credit to your organization, by this id:</p>
      <Loaded query={query} rows={1}>
        {({ id }) => <CopyLine text={id} label="Id of the organization" />}
      </Loaded>
      <DialogActions>
        <Button onClick={close}>Close</Button>
      </DialogActions>
    </div>
  );
}

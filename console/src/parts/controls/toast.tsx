import { Toast } from '@base-ui/react/toast';
import { Button } from './button.js';
import styles from '../toast.module.css';

const toasts = Toast.createToastManager();

/** Says for some seconds that something was done, where the page itself does not show it. */
export function say(title: string): void {
  toasts.add({ title });
}

/** Says, until it is closed, that an act has failed of which the page shows nothing, and offers to try it again. */
export function sayFailed(title: string, tryAgain: () => void): void {
  const onClick = () => {
    toasts.close(id);
    tryAgain();
  };
  const id = toasts.add({ title, timeout: 0, actionProps: { children: 'Try again', onClick } });
}

/** The place where {@link say} and {@link sayFailed} speak. */
export function Toasts() {
  return (
    <Toast.Provider toastManager={toasts}>
      <Toast.Portal>
        <Toast.Viewport className={styles.viewport}>
          <ToastList />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function ToastList() {
  const shown = Toast.useToastManager();
  return shown.toasts.map((toast) => (
    <Toast.Root key={toast.id} toast={toast} className={styles.toast}>
      <Toast.Title className={styles.title} />
      <Toast.Action render={<Button />} />
      <Toast.Close render={<Button kind="plain">Close</Button>} />
    </Toast.Root>
  ));
}

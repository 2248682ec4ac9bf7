import { useAct } from '../../data/forms/act.js';
import { saveFile } from '../../data/api/download.js';
import { Button } from '../../parts/controls/button.js';
import { ErrorBox } from '../../parts/controls/states.js';

/** A button that saves what is shown, and all further pages of it, as a CSV file. */
export function CsvButton({ name, read }: { name: string; read: () => Promise<Blob> }) {
  const saving = useAct(read, [], (content) => saveFile(name, content));
  return (
    <>
      <Button isBusy={saving.isPending} onClick={() => saving.mutate()}>
        Save as CSV
      </Button>
      {saving.error && <ErrorBox error={saving.error} />}
    </>
  );
}

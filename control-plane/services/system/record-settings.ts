import { SetupError } from '../../../shared/coded-error.js';
import { readSettingsText, settingsText, weakerSettings } from '../../domain/copied-settings.js';
import type { Setting } from '../../domain/setting.js';
import { deleteMeta, readMeta, writeMeta } from '../../store/meta.js';
import type { Store } from '../../store/store.js';

/**
 * Writes the settings of this run into the database, so that each copy of it lists them. Throws SetupError if the database was restored
 * from a copy whose settings protected more, and nobody has accepted that.
 */
export function recordSettings(store: Store, settings: readonly Setting[]): void {
  store.transact((tx) => {
    const before = readMeta(tx, 'settings');
    const copied = readMeta(tx, 'settings_unaccepted') === undefined ? null : readSettingsText(before);
    const weaker = copied === null ? [] : weakerSettings(copied, settings);
    if (weaker.length > 0)
      throw new SetupError(
        `the settings protect less than those of the restored copy: ${weaker.join('; ')}. Change them, or accept them with "gpurent-control-plane accept-settings"`,
      );
    deleteMeta(tx, 'settings_unaccepted');
    const text = settingsText(settings);
    if (text !== before) writeMeta(tx, 'settings', text);
  });
}

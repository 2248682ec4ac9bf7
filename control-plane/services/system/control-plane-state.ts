import { VERSION } from '../../../shared/version.js';
import { NEED_AFTER_MS } from '../../domain/machines/need.js';
import type { Setting } from '../../domain/setting.js';
import { restoredAt } from '../../store/meta.js';
import { migrations } from '../../store/migrations/index.js';
import type { BackupState } from '../../store/scheduled-backups.js';
import { pageFrom, type ListOrPage, type PageRequest } from './pages.js';
import type { Platform } from './platform.js';

/** Times are milliseconds since 1970 UTC. */
export interface ControlPlaneState {
  version: string;
  /** The number of the last migration of the database. */
  schema_version: number;
  started_at: number;
  /** When the database was restored from a backup; null: never. */
  restored_at: number | null;
  /** The scheduled backups; null: none are scheduled. */
  backups: (BackupState & { overdue: boolean }) | null;
}

/** Returns, for an operator, what this control plane is, and how its backups stand. */
export function getControlPlane({ store, clock, bootedAt, backups }: Platform): ControlPlaneState {
  const state = backups?.state();
  return {
    version: VERSION,
    // The store opens no other.
    schema_version: migrations.length,
    started_at: Math.round(clock.now() - (clock.monotonic() - bootedAt)),
    restored_at: store.transact(restoredAt) || null,
    backups: state ? { ...state, overdue: state.overdueMs > NEED_AFTER_MS.backup_overdue } : null,
  };
}

/** Lists, for an operator, the settings of this control plane, by name. */
export function listSettings({ settings }: Platform, request: PageRequest): ListOrPage<Setting> {
  return pageFrom([...settings], request, { by: { name: 'asc' }, keyOf: ({ name }) => [name] });
}

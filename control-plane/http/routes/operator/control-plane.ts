import { Type } from 'typebox';
import { HOUR_MS } from '../../../../shared/time.js';
import { getControlPlane, listSettings, type ControlPlaneState } from '../../../services/system/control-plane-state.js';
import { OPERATOR } from '../../access/policy.js';
import { flag, integer, iso, isoOrNull, nullable, text, timestamp } from '../../schema/schemas.js';
import { listOrPage, PageQuery, viewPage, type Routes } from '../routes.js';

const Backups = Type.Object(
  {
    folder: text('The folder for the copies'),
    every_hours: integer('The hours between two copies'),
    keep: integer('How many copies are kept'),
    last_at: nullable(timestamp('When the newest copy in the folder was made; null: there is none')),
    usable: flag('Whether the folder could be used at the last check'),
    overdue: flag(
      'Whether a copy is more than an hour late, or the folder cannot be used: as for GpurentBackupOverdue',
    ),
  },
  {
    description:
      'The scheduled backups; null: none are scheduled. Copies by the command `backup` are not known to the control plane',
  },
);

const ControlPlane = Type.Object(
  {
    version: text('The version of the control plane'),
    schema_version: integer('The version of the schema of its database'),
    started_at: timestamp('When the process started'),
    restored_at: nullable(timestamp('When the database was restored from a backup; null: never')),
    backups: nullable(Backups),
  },
  { title: 'ControlPlane' },
);

const Setting = Type.Object(
  {
    name: text('The name of the setting'),
    value: nullable(text('The value that counts; null: it is not shown, or it is not set and has no default')),
    is_set: flag('Whether somebody has set it'),
    is_default: flag('Whether what counts is the default'),
    is_shown: flag('Whether its value is shown. Of secrets, and of files with secrets, it never is'),
  },
  { title: 'Setting' },
);

/** Routes for operators: the control plane itself. */
export const operatorControlPlaneRoutes: Routes = (app, platform) => {
  const config = { policy: OPERATOR };

  app.get(
    '/v1/operator/control-plane',
    {
      config,
      schema: {
        operationId: 'getControlPlane',
        summary: 'Get the version of the control plane, and how its backups stand',
        response: { 200: ControlPlane },
      },
    },
    () => controlPlaneView(getControlPlane(platform)),
  );
  app.get(
    '/v1/operator/settings',
    {
      config,
      schema: {
        operationId: 'listSettings',
        summary: 'List the settings of the control plane as they stand',
        description: 'Read-only: settings are changed where the control plane runs. No secret is in the answer.',
        querystring: PageQuery,
        response: { 200: listOrPage(Setting) },
      },
    },
    (request) => viewPage(listSettings(platform, request.query), (setting) => setting),
  );
};

function controlPlaneView({ started_at, restored_at, backups, ...state }: ControlPlaneState) {
  return {
    ...state,
    started_at: iso(started_at),
    restored_at: isoOrNull(restored_at),
    backups: backups && {
      folder: backups.folder,
      every_hours: backups.everyMs / HOUR_MS,
      keep: backups.keep,
      last_at: isoOrNull(backups.newestAt),
      usable: backups.isUsable,
      overdue: backups.overdue,
    },
  };
}

import { readSettingsFile } from '../shared/settings-file.js';

/** The only reader of the process environment. A file of NAME=value lines, if one is named, stands below it. */
export function readEnvironment(): Record<string, string | undefined> {
  const file = process.env['GPURENT_CONFIG'];
  const names = Object.keys(process.env).filter((name) => name.startsWith('GPURENT_'));
  const set = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  return { ...(file ? readSettingsFile('GPURENT_CONFIG', file) : {}), ...set };
}

/** Where systemd waits to hear that this program is ready; undefined: nobody waits. */
export function readNotifySocket(): string | undefined {
  return process.env['NOTIFY_SOCKET'];
}

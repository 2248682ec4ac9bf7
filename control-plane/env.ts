import { readSettingsFile } from '../shared/settings-file.js';

/** Reads the settings; nothing else reads the process environment. Its values override those of the file in GPURENT_CONFIG. */
export function readEnvironment(): Record<string, string | undefined> {
  const file = process.env['GPURENT_CONFIG'];
  const names = Object.keys(process.env).filter((name) => name.startsWith('GPURENT_'));
  const set = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  return { ...(file ? readSettingsFile('GPURENT_CONFIG', file) : {}), ...set };
}

/** Returns the socket at which systemd waits for readiness; undefined: nothing waits for it. */
export function readNotifySocket(): string | undefined {
  return process.env['NOTIFY_SOCKET'];
}

import { readSettingsFile } from '../shared/settings-file.js';

type Settings = Record<string, string | undefined>;

/** Returns the settings from the environment and, for those not set there, from the file GPURENT_AGENT_CONFIG (NAME=value lines). */
export function readEnvironment(): Settings {
  const file = process.env['GPURENT_AGENT_CONFIG'];
  const names = Object.keys(process.env).filter((name) => name.startsWith('GPURENT_AGENT_') || name === 'DOCKER_HOST');
  const set = Object.fromEntries(names.map((name) => [name, process.env[name]]));
  return { ...(file ? readSettingsFile('GPURENT_AGENT_CONFIG', file) : {}), ...set };
}

/** Returns the socket on which systemd waits for the readiness message, or undefined without systemd. */
export function readNotifySocket(): string | undefined {
  return process.env['NOTIFY_SOCKET'];
}

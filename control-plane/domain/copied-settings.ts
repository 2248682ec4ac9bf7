import { isLoopback } from '../../shared/network/addresses.js';
import type { Setting } from './setting.js';

/** A setting as a copy of the database lists it. */
export type CopiedSetting = Pick<Setting, 'name' | 'value' | 'is_set' | 'is_shown'>;

/** Writes settings as text for the database: without secrets, as operators see them. */
export function settingsText(settings: readonly CopiedSetting[]): string {
  return JSON.stringify(settings.map(({ name, value, is_set, is_shown }) => ({ name, value, is_set, is_shown })));
}

/** Reads what {@link settingsText} has written; null: there is none, as in a copy of an older release, or it is damaged. */
export function readSettingsText(text: string | undefined): CopiedSetting[] | null {
  try {
    const read: unknown = JSON.parse(text ?? '');
    return Array.isArray(read) ? (read as CopiedSetting[]) : null;
  } catch {
    return null;
  }
}

/** Returns a line for each setting that differs, in the words of somebody who restores a copy here. */
export function differencesOf(copied: readonly CopiedSetting[], here: readonly CopiedSetting[]): string[] {
  const names = [...new Set([...copied, ...here].map(({ name }) => name))].sort();
  return names.flatMap((name) => {
    const [before, now] = [copied, here].map((settings) => inWords(settings.find((one) => one.name === name)));
    return before === now ? [] : [`${name}: ${before} in the copy, ${now} here`];
  });
}

function inWords(setting: CopiedSetting | undefined): string {
  if (setting === undefined) return 'unknown';
  if (setting.is_shown) return setting.value === null ? 'not set' : `"${setting.value}"`;
  return setting.is_set ? 'set' : 'not set';
}

/** Returns what to say after a restore about the settings of the copy and those of this machine. */
export function aboutSettings(
  copied: readonly CopiedSetting[] | null,
  here: readonly CopiedSetting[],
  isAccepted: boolean,
): string {
  if (copied === null) return 'the copy does not list its settings: compare them with your copy of the settings file\n';
  const differences = differencesOf(copied, here);
  if (differences.length === 0) return '';
  const weaker = isAccepted ? [] : weakerSettings(copied, here);
  const refusal = `the control plane will not start, because settings protect less than in the copy: ${weaker.join('; ')}. Change them, or accept them with "gpurent-control-plane accept-settings"`;
  return [
    'the settings of this machine are as they were; these differ from those of the copy:',
    ...differences.map((line) => `  ${line}`),
    ...(weaker.length > 0 ? [refusal] : []),
    '',
  ].join('\n');
}

/** Returns why these settings protect less than those of the copy: a line each; empty if they do not. */
export function weakerSettings(copied: readonly CopiedSetting[], here: readonly CopiedSetting[]): string[] {
  const of = (settings: readonly CopiedSetting[], name: string) =>
    settings.find((setting) => setting.name === name)?.value ?? '';
  const isPlain = (settings: readonly CopiedSetting[], side: string) =>
    of(settings, `GPURENT_${side}_TLS`) === 'off' && !isLoopback(hostOf(of(settings, `GPURENT_${side}_ADDRESS`)));
  const lines = Object.entries(STRICT).map(([name, strict]) =>
    of(copied, name) === strict && of(here, name) !== strict
      ? `${name} is "${of(here, name)}", and was "${strict}" in the copy`
      : '',
  );
  for (const side of ['HTTP', 'GRPC'])
    if (isPlain(here, side) && !isPlain(copied, side))
      lines.push(`GPURENT_${side}_TLS is "off" for an address that is not loopback, and was not so in the copy`);
  return lines.filter(Boolean);
}

/** The values that protect more, by the names of their settings. */
const STRICT = { GPURENT_SIGN_UP: 'invitation', GPURENT_OPERATORS_NEED_SECOND_FACTOR: 'yes' };

const hostOf = (address: string) => address.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');

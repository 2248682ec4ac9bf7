import { expect, it } from 'vitest';
import {
  aboutSettings,
  differencesOf,
  readSettingsText,
  settingsText,
  weakerSettings,
} from '../../control-plane/domain/copied-settings.js';
import { describeSettings } from '../../control-plane/domain/setting.js';

const DEFAULTS = {
  GPURENT_GRPC_ADDRESS: '127.0.0.1:8090',
  GPURENT_GRPC_TLS: 'auto',
  GPURENT_HTTP_ADDRESS: '127.0.0.1:8080',
  GPURENT_HTTP_TLS: 'auto',
  GPURENT_OPERATORS_NEED_SECOND_FACTOR: 'no',
  GPURENT_SIGN_UP: 'open',
};
const of = (environment: Record<string, string>) =>
  describeSettings([...Object.keys(DEFAULTS), 'GPURENT_SMTP_PASSWORD_FILE'], environment, DEFAULTS);

it.each<[Record<string, string>, Record<string, string>, RegExp[]]>([
  [{}, {}, []],
  [{ GPURENT_SIGN_UP: 'invitation' }, {}, [/^GPURENT_SIGN_UP is "open", and was "invitation"/]],
  [{}, { GPURENT_SIGN_UP: 'invitation', GPURENT_OPERATORS_NEED_SECOND_FACTOR: 'yes' }, []],
  [{ GPURENT_OPERATORS_NEED_SECOND_FACTOR: 'yes' }, {}, [/SECOND_FACTOR is "no", and was "yes"/]],
  [{ GPURENT_GRPC_ADDRESS: '0.0.0.0:8090' }, {}, []],
  [{}, { GPURENT_GRPC_ADDRESS: '[::]:8090', GPURENT_GRPC_TLS: 'off' }, [/GPURENT_GRPC_TLS is "off"/]],
  [{}, { GPURENT_HTTP_ADDRESS: '10.0.0.1:80', GPURENT_HTTP_TLS: 'off' }, [/GPURENT_HTTP_TLS is "off"/]],
  [{}, { GPURENT_HTTP_ADDRESS: '[::1]:80', GPURENT_HTTP_TLS: 'off', GPURENT_GRPC_TLS: 'off' }, []],
  [
    { GPURENT_GRPC_ADDRESS: '10.0.0.1:8090', GPURENT_GRPC_TLS: 'off' },
    { GPURENT_GRPC_ADDRESS: '10.0.0.2:8090', GPURENT_GRPC_TLS: 'off' },
    [],
  ],
])('a copy made with %j, on a machine with %j', (copied, here, weaker) => {
  const found = weakerSettings(of(copied), of(here));
  expect(found).toEqual(weaker.map((line) => expect.stringMatching(line) as string));
});

it('names each setting that differs, and of secrets only whether they are set', () => {
  const copied = of({ GPURENT_SIGN_UP: 'invitation', GPURENT_SMTP_PASSWORD_FILE: '/hidden' });
  expect(differencesOf(copied, of({}))).toEqual([
    'GPURENT_SIGN_UP: "invitation" in the copy, "open" here',
    'GPURENT_SMTP_PASSWORD_FILE: set in the copy, not set here',
  ]);
  expect(settingsText(copied)).not.toContain('hidden');
  expect(differencesOf(readSettingsText(settingsText(copied)) ?? [], copied)).toEqual([]);
  expect(differencesOf([], of({})).at(-1)).toBe('GPURENT_SMTP_PASSWORD_FILE: unknown in the copy, not set here');
});

it('says after a restore what differs, and whether the control plane will start', () => {
  const strict = of({ GPURENT_SIGN_UP: 'invitation' });
  expect(aboutSettings(strict, of({}), false)).toMatch(
    /"invitation" in the copy[^]*will not start[^]*accept-settings"\n$/,
  );
  expect(aboutSettings(strict, of({}), true)).not.toContain('will not start');
  expect(aboutSettings(of({}), strict, false)).not.toContain('will not start');
  expect(aboutSettings(strict, strict, false)).toBe('');
  for (const text of [undefined, '', '{', '{}'])
    expect(aboutSettings(readSettingsText(text), strict, false)).toMatch(/^the copy does not list its settings/);
});

import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { ApiError, UnreachableError } from '../../client/api/index.js';
import { sessionNameOf } from '../../client/cli/commands/login.js';
import { entryOf } from '../../client/cli/commands/schedule.js';
import { bashCompletion } from '../../client/cli/completion/scripts.js';
import { addressOf, tokenOf } from '../../client/cli/context/address.js';
import { curlOf } from '../../client/cli/context/curl.js';
import { disksOf } from '../../client/cli/deploy/offers.js';
import { priceLines } from '../../client/cli/deploy/price.js';
import { adviceFor } from '../../client/cli/errors/advice.js';
import { CliError } from '../../client/cli/errors/cli-error.js';
import { explain } from '../../client/cli/errors/explain.js';
import { only } from '../../client/cli/instances/find.js';
import { VERSION } from '../../client/cli/invocation/version.js';
import { dollars, microOf } from '../../client/cli/output/money.js';
import { table, type Column } from '../../client/cli/output/table.js';
import { ago, durationOf, spell } from '../../client/cli/output/times.js';
import { createProgram } from '../../client/cli/program.js';
import { hostNameOf, sshTarget } from '../../client/cli/ssh/ssh-target.js';
import { jsonText, plain, ProgramOutput } from '../../client/cli/terminal/plain-text.js';
import type { Terminal } from '../../client/cli/terminal/terminal.js';
import { VERSION as RELEASE } from '../../shared/version.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe('money', () => {
  it.each([
    [0, '$0.00'],
    [1, '$0.000001'],
    [400_000, '$0.40'],
    [1_234_500, '$1.2345'],
    [-2_500_000, '-$2.50'],
    [9_007_199_254_740_991, '$9007199254.740991'],
  ])('%i micro-dollars are %s, exactly', (micro, text) => expect(dollars(micro)).toBe(text));

  it.each([
    ['5', 5_000_000],
    ['$0.25', 250_000],
    ['-2.5', -2_500_000],
    ['0.000001', 1],
    ['-0', 0],
  ])('%s is read', (text, micro) => expect(microOf(text)).toBe(micro));

  it.each(['', 'five', '1.2345678', '1e3', '1,5', '.5', '1.'])('"%s" is refused', (text) =>
    expect(() => microOf(text)).toThrow('is not an amount in dollars'),
  );
});

it.each([
  [120, 120],
  [50_000, 20_000],
  [4, 10],
])('a machine with %i GB of free disk is asked for 10 to %i', (disk_available_gb, most) =>
  expect(disksOf({ machine: { disk_available_gb } })).toEqual({ least: 10, most }),
);

it.each([
  [{ warning: null }, []],
  [{ warning: null, driver_warning: null }, []],
  [{ warning: 'too slow', driver_warning: 'too old' }, ['Warning: too slow', 'Warning: too old']],
])('a deploy warns of what its estimate warns of: %j', (said, warnings) => {
  type Given = Parameters<typeof priceLines>;
  const plan = { template: { name: 'T' }, offer: { num_gpus: 1, gpu_model: 'A', machine: {} } } as Given[0];
  const prices = { gpu_per_hour_micro: 1, disk_per_hour_micro: 1, balance_micro: 1, balance_lasts_until: null };
  const lines = priceLines(plan, { disk_gb: 10 } as Given[1], { ...prices, ...said } as Given[2], 0);
  expect(lines.filter((line) => line.startsWith('Warning'))).toEqual(warnings);
});

describe('times', () => {
  it.each([
    ['90m', 90 * MINUTE],
    ['4h', 4 * HOUR],
    ['1d12h', 36 * HOUR],
    ['30s', 30_000],
  ])('%s is read', (text, ms) => expect(durationOf(text)).toBe(ms));

  it.each(['', 'ever', '4', '4h3', '0h', 'h', '-4h', '4 h'])('"%s" is refused', (text) =>
    expect(() => durationOf(text)).toThrow('is not a duration'),
  );

  it.each([
    [-1, '0 s'],
    [59_999, '59 s'],
    [3 * HOUR + 20 * MINUTE, '3 h 20 min'],
    [HOUR, '1 h'],
    [50 * HOUR, '2 days 2 h'],
  ])('%i ms are said as %s', (ms, text) => expect(spell(ms)).toBe(text));

  it('what has never been is a dash', () =>
    expect([ago(null, 0), ago('1970-01-01T00:00:00.000Z', HOUR)]).toEqual(['-', '1 h ago']));

  it('times of the week are read, also over the end of a week', () => {
    expect(entryOf('start', 'fri-mon@08:00')).toEqual({
      action: 'start',
      days: ['monday', 'friday', 'saturday', 'sunday'],
      at: '08:00',
    });
    expect(entryOf('stop', 'sat,sunday@10:30').days).toEqual(['saturday', 'sunday']);
    expect(entryOf('stop', 'daily@10:30').days).toHaveLength(7);
    for (const text of ['mon', 'm@08:00', 'mon@8', '@08:00', 'noday@08:00'])
      expect(() => entryOf('stop', text)).toThrow('times of the week');
  });
});

describe('a table', () => {
  interface Row {
    id: string;
    name: string;
    price: number;
  }
  const columns: Column<Row>[] = [
    { title: 'ID', of: ({ id }) => id },
    { title: 'NAME', of: ({ name }) => name, yields: 1 },
    { title: 'PRICE', of: ({ price }) => price, align: 'right', yields: 2 },
  ];
  const rows = [
    { id: 'aaaa', name: 'a name that is long', price: 1 },
    { id: 'bbbb', name: '日本', price: 20 },
  ];

  it('aligns what it has, also wide characters', () => {
    expect(table(rows, columns)).toEqual([
      'ID    NAME                 PRICE',
      'aaaa  a name that is long      1',
      'bbbb  日本                    20',
    ]);
  });

  it('leaves columns out, then cuts, where a terminal is narrow', () => {
    expect(table(rows, columns, 25)[1]).toBe('aaaa  a name that is long');
    const cut = [columns[0], { ...columns[1], yields: undefined }] as Column<Row>[];
    expect(table(rows, cut, 16)[1]).toBe('aaaa  a name th…');
    for (const line of table(rows, columns, 5)) expect(line.length).toBeLessThanOrEqual(5);
  });

  it('is one line a row, whatever a cell holds', () => {
    const [, line] = table([{ id: 'x\ny\u001b[2J', name: '', price: 0 }], columns);
    expect(line).toBe(`x y${' '.repeat(12)}0`);
  });
});

describe('text of strangers', () => {
  it.each([
    ['colours', 'a\u001b[31mb', 'ab'],
    ['a cleared screen', 'a\u001b[2Jb', 'ab'],
    ['a title', 'a\u001b]0;evil\u0007b', 'ab'],
    ['a title that does not end', 'a\u001b]0;evil', 'a'],
    ['a link', '\u001b]8;;https://evil\u001b\\text\u001b]8;;\u001b\\', 'text'],
    ['a device string', 'a\u001bPq#0\u001b\\b', 'ab'],
    ['one byte for two', 'a\u009b2Jb\u009dx\u009cc', 'abc'],
    ['another character set', 'a\u001b(0b', 'ab'],
    ['a cut sequence', 'a\u001b[31', 'a'],
    ['a reset', 'a\u001bcb', 'ab'],
    ['lines and tabs', 'a\r\nb\tc', 'a b c'],
    ['bells and backspaces', 'a\u0007\u0008\u007fb', 'ab'],
    ['a turned direction', 'a\u202eb\u2066c\u200f', 'a\\u{202e}b\\u{2066}c\\u{200f}'],
    ['an invisible letter', 'a\u200bb', 'a\\u{200b}b'],
    ['a sequence within one', 'a\u001b[\u001b[2J31mb', 'a31mb'],
  ])('%s have no effect', (_name, text, shown) => expect(plain(text)).toBe(shown));

  it('of a workload keeps its colours, where there are any, and nothing else', () => {
    const output = (line: string, withColour: boolean) => new ProgramOutput(withColour).line(line);
    expect(output('\u001b[1;31mred\u001b[K\u001b[0m\u0007', true)).toBe('\u001b[1;31mred\u001b[0m\u001b[0m');
    expect(output('\u001b[1;31mred\u001b[0m', false)).toBe('red');
    expect(output('a\tb\u001b]52;c;evil\u0007', true)).toBe('a\tb');
    expect(output('10 %\r20 %\r', false)).toBe('10 %\n20 %\n');
    expect(output('a\u001b', true)).toBe('a');
    expect(output('\u001b[32mab\u202e', true)).toBe('\u001b[32mab\\u{202e}\u001b[0m');
  });

  it('of a workload has no effect either where a sequence goes over several lines', () => {
    const output = new ProgramOutput(true);
    expect(['a\u001bPq', 'pixels', '\u001b\\b', 'c'].map((line) => output.line(line))).toEqual(['a', '', 'b', 'c']);
  });

  it('in JSON is escaped, and means the same', () => {
    const value = { label: 'a\u001b[2J\u009b\u202e\u007f\n' };
    // oxlint-disable-next-line no-control-regex
    expect(jsonText(value)).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(JSON.parse(jsonText(value))).toEqual(value);
  });
});

describe('errors', () => {
  const api = (status: number, code: string) => new ApiError(status, { code, message: 'words', request_id: 'r' });

  it.each([
    [400, 'MALFORMED_JSON', 2],
    [422, 'VALIDATION_FAILED', 2],
    [400, 'EXPIRED_TOKEN', 7],
    [401, 'TOKEN_INVALID', 7],
    [402, 'SPEND_LIMIT_REACHED', 5],
    [403, 'ADMIN_REQUIRED', 3],
    [404, 'INSTANCE_NOT_FOUND', 4],
    [409, 'INVALID_STATE', 3],
    [422, 'DISK_TOO_LARGE', 3],
    [429, 'RATE_LIMITED', 6],
    [500, 'INTERNAL', 1],
    [503, 'UNAVAILABLE', 6],
    [404, 'UNEXPECTED_ANSWER', 6],
    [409, 'A_CODE_OF_A_LATER_RELEASE', 3],
  ])('%i %s ends with %i', (status, code, exitCode) =>
    expect(explain(api(status, code))).toMatchObject({ exitCode, code }),
  );

  it('say the words of the server first, then what helps', () => {
    expect(explain(api(402, 'INSUFFICIENT_BALANCE'))).toMatchObject({ message: 'words', requestId: null });
    expect(explain(api(500, 'INTERNAL')).requestId).toBe('r');
    expect(explain(new UnreachableError('https://x', new Error('away'))).exitCode).toBe(6);
    expect(explain(new TypeError('oops'))).toMatchObject({ exitCode: 1, message: 'oops' });
  });

  it('have advice only for codes that there are', () => {
    const codes = readFileSync(new URL('../../docs/codes.md', import.meta.url), 'utf8');
    const advised = [
      ...readFileSync(new URL('../../client/cli/errors/advice.ts', import.meta.url), 'utf8').matchAll(
        /^ {2}([A-Z_]+):/gm,
      ),
    ];
    expect(advised.length).toBeGreaterThan(20);
    for (const [, code = ''] of advised)
      expect({ code, isThere: codes.includes(`\`${code}\``) }).toEqual({ code, isThere: true });
    expect(adviceFor('constructor')).toBeNull();
  });
});

describe('one of several', () => {
  const things = [
    { id: 'aaaa1111', name: 'one' },
    { id: 'aaaa2222', name: 'two' },
    { id: 'bbbb3333', name: 'two' },
    { id: 'cccc4444', name: 'aaaa1111' },
  ];
  const find = (wanted: string) => only(things, wanted, 'thing', (thing) => thing, 'list').id;

  it('is found by a name, or the beginning of its id', () => {
    expect([find('one'), find('bbbb'), find('AAAA2')]).toEqual(['aaaa1111', 'bbbb3333', 'aaaa2222']);
  });

  it.each(['two', 'aaaa', 'aaaa1111'])('is not guessed: %s', (wanted) =>
    expect(() => find(wanted)).toThrow('can be more than one'),
  );
  it.each(['aaa', 'three', ''])('is not there: "%s"', (wanted) =>
    expect(() => find(wanted)).toThrow('there is no thing'),
  );
});

describe('an address and a token', () => {
  it.each([
    ['gpus.example', 'https://gpus.example'],
    ['https://gpus.example:8443/', 'https://gpus.example:8443'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['http://localhost:8080/', 'http://localhost:8080'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
  ])('%s', (text, url) => expect(addressOf(text, false)).toBe(url));

  it.each([
    'http://gpus.example',
    'http://127.evil.example',
    'ftp://gpus.example',
    'https://user:pass@gpus.example',
    'https://x/?a=1',
    '',
  ])('%s is refused', (text) => expect(() => addressOf(text, false)).toThrow(CliError));

  it('plain http only where it was asked for', () =>
    expect(addressOf('http://gpus.example', true)).toBe('http://gpus.example'));

  it('a token has one line, and is in no error', () => {
    expect(tokenOf('svc_0123456789\n')).toBe('svc_0123456789');
    for (const text of ['', 'short', 'svc_01234\n56789', 'svc_01234é6789'])
      expect(() => tokenOf(text)).toThrow(/^this is not a token$/);
  });
});

it('a request is explained as curl, without what is secret', async () => {
  const body = JSON.stringify({
    label: "it's",
    device_code: 'dev_1',
    invite_token: 'inv_1',
    env_overrides: [
      { key: 'A', value: 'shown' },
      { key: 'B', value: 'hidden', secret: true },
    ],
  });
  const headers = { Authorization: 'Bearer svc_secret', 'Content-Type': 'application/json', 'X-Org-Id': 'o' };
  const curl = await curlOf(new Request('https://x/v1/instances', { method: 'POST', body, headers }));
  expect(curl).toBe(
    `curl 'https://x/v1/instances' -H "Authorization: Bearer $GPURENT_TOKEN" -H 'X-Org-Id: o' -H 'Content-Type: application/json' -d '{"label":"it'\\''s","device_code":"...","invite_token":"...","env_overrides":[{"key":"A","value":"shown"},{"key":"B","value":"...","secret":true}]}'`,
  );
});

describe('ssh', () => {
  const instance = {
    id: '01234567-89ab-4cde-8f01-23456789abcd',
    label: 'My box!',
    status: 'running',
    ssh_host: '203.0.113.7',
    ssh_port: 40001,
    ssh_user: 'root',
    ssh_host_key: `ssh-ed25519 ${'A'.repeat(68)}`,
  };
  const target = (changes: object) => sshTarget({ ...instance, ...changes } as never);

  it('names an instance as ssh takes it', () => {
    expect(hostNameOf(instance)).toBe('gpurent-My-box');
    expect(hostNameOf({ ...instance, label: '*' })).toBe('gpurent-01234567');
    expect(hostNameOf({ ...instance, label: null })).toBe('gpurent-01234567');
  });

  it.each([
    [{ ssh_host: '-oProxyCommand=evil' }],
    [{ ssh_host: 'host\nProxyCommand evil' }],
    [{ ssh_user: '-l' }],
    [{ ssh_user: 'root evil' }],
    [{ ssh_host_key: 'ssh-ed25519 AAAA\n* ssh-ed25519 EVIL' }],
    [{ ssh_port: '22\n  ProxyCommand evil' }],
    [{ ssh_port: 0 }],
    [{ id: 'x\nssh-ed25519 AAAA evil\n/../../../../../.ssh/authorized_keys' }],
    [{ id: '../../../.profile' }],
  ])('takes nothing that could mean something else: %j', (changes) => {
    expect(target({}).host).toBe('203.0.113.7');
    expect(() => target(changes)).toThrow('malformed');
  });
});

it.each([
  ['laptop', 'gpurent on laptop'],
  ['ip-172-31-22-33.eu-central-1.compute.internal', 'gpurent on ip-172-31-22-33.eu-central-1.compute.'],
  ["J\u00fcrgen's \u001b[2J box", 'gpurent on J-rgen-s-2J-box'],
])('a session on %s has a name that the control plane takes', (machine, name) => {
  expect(sessionNameOf(machine)).toBe(name);
  expect(name).toMatch(/^[A-Za-z0-9][A-Za-z0-9 ._@()-]{0,47}$/);
});

describe('the program', () => {
  const all = async (): Promise<Command[]> => {
    const { program, loadAll } = createProgram({ env: {} } as Terminal);
    await loadAll();
    const below = (command: Command): Command[] => [command, ...command.commands.flatMap(below)];
    return below(program);
  };

  it('has an option of one name in a command or in what is above it, never in both', async () => {
    const clashes = (await all()).flatMap((command) => {
      const above: string[] = [];
      for (let each = command.parent; each; each = each.parent)
        above.push(...each.options.map(({ long }) => long ?? ''));
      return command.options
        .filter(({ long }) => above.includes(long ?? ''))
        .map(({ long }) => `${command.name()} ${long ?? ''}`);
    });
    expect(clashes).toEqual([]);
  });

  it('describes each command, argument and option', async () => {
    for (const command of await all()) {
      expect({ name: command.name(), described: command.description() !== '' }).toMatchObject({ described: true });
      for (const { long, description } of command.options)
        expect({ long, described: description !== '' }).toMatchObject({ described: true });
    }
  });

  it('is of this release', () => expect(VERSION).toBe(RELEASE));

  it('completes with words alone', () => {
    const script = bashCompletion(new Map([['gpurent', ['ls', '--json']]]));
    expect(script).toContain("'gpurent') echo 'ls --json' ;;");
  });
});

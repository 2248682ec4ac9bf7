import { describe, expect, it } from 'vitest';
import { MIB } from '../../shared/bytes.js';
import { MINUTE_MS } from '../../shared/time.js';
import { pullFailure } from '../../agent/domain/pull-failure.js';
import { refuseOtherPlaces } from '../../agent/pulls/manifest.js';
import { PullWatch } from '../../agent/runtime/docker/images/pull-watch.js';
import { isForbidden } from '../../shared/network/forbidden-networks.js';

describe('A pull', () => {
  const watch = () => new PullWatch({ leastBytesPerSecond: MIB, longestMs: 60 * MINUTE_MS, mostBytes: 1 }, 0);
  const loaded = (id: string, current: number, total = 1_000 * MIB) => ({
    status: 'Downloading',
    id,
    progressDetail: { current, total },
  });

  it('may be slow for two minutes, and then has to have come at a MiB per second on average', () => {
    const slow = watch();
    slow.add(loaded('a', 60 * MIB));
    slow.add({ status: 'Waiting', id: 'b' });
    expect(slow.complaint(2 * MINUTE_MS)).toBeUndefined();
    expect(slow.complaint(2 * MINUTE_MS + 1)).toContain('less than 1 MiB per second');
    slow.add(loaded('b', 100 * MIB));
    expect(slow.complaint(2.5 * MINUTE_MS)).toBeUndefined();
  });

  it('that is all here may be unpacked for as long as the whole may take', () => {
    const unpacking = watch();
    unpacking.add(loaded('a', 1 * MIB, 2 * MIB));
    unpacking.add({ status: 'Download complete', id: 'a' });
    expect(unpacking.percent).toBe(100);
    expect(unpacking.complaint(60 * MINUTE_MS)).toBeUndefined();
    expect(unpacking.complaint(60 * MINUTE_MS + 1)).toContain('longer than 60 minutes');
  });

  it('of which nothing is known is slow, too', () => {
    expect(watch().complaint(3 * MINUTE_MS)).toContain('less than');
  });
});

it.each([
  ['no matching manifest for linux/arm64/v8 in the manifest list entries', 'not made for the processor'],
  ['manifest for x:1 not found: manifest unknown: manifest unknown', 'no such image (not found)'],
  ['pull access denied for x, repository does not exist or may require docker login', 'unauthorized'],
  ['Head "http://127.0.0.1:5000/v2/a/manifests/1": no basic auth credentials', 'unauthorized'],
  ['toomanyrequests: You have reached your pull rate limit', 'limits how often'],
  ['write /var/lib/docker/tmp/x: no space left on device', 'disk of this machine is full'],
  ['Get "https://r/v2/": x509: certificate signed by unknown authority', 'certificate'],
  ['Get "https://r/v2/": dial tcp: lookup r on 1.1.1.1:53: no such host', 'cannot be resolved'],
  ['Get "https://r/v2/": dial tcp: lookup r on 1.1.1.1:53: write: operation not permitted', 'cannot be resolved'],
  ['Get "https://r/v2/": dial tcp 203.0.113.1:443: connect: connection refused', 'cannot be reached'],
  ['ApplyLayer exit status 1 stdout:  stderr: Container ID 70000 cannot be mapped to a host ID', 'ids above 65535'],
  ['potentially insufficient UIDs or GIDs available in user namespace: lchown /x: invalid argument', 'ids above 65535'],
  ['received unexpected HTTP status: 500 the words of a stranger', 'the registry has answered with an error'],
])('what Docker says of a pull is put into our own words: %s', (said, words) => {
  expect(pullFailure(said)).toContain(words);
});

it.each([
  ['10.1.2.3', true],
  ['127.0.0.1', true],
  ['169.254.169.254', true],
  ['168.63.129.16', true],
  ['100.100.100.200', true],
  ['192.0.0.192', true],
  ['::1', true],
  ['fd00:ec2::254', true],
  ['::ffff:10.1.2.3', true],
  ['64:ff9b::a01:203', true],
  ['2002:a01:203::', true],
  ['fe80::1', true],
  ['no address', true],
  ['1.1.1.1', false],
  ['203.0.113.9', false],
  ['2606:4700::1111', false],
  ['::ffff:1.1.1.1', false],
])('%s is forbidden: %s', (address, expected) => {
  expect(isForbidden(address)).toBe(expected);
});

it('a network that is allowed is not forbidden, and only that', () => {
  expect(isForbidden('192.168.7.9', ['192.168.7.0/24'])).toBe(false);
  expect(isForbidden('192.168.8.9', ['192.168.7.0/24'])).toBe(true);
});

it('a manifest that no program can search is refused as unsound, not taken for a registry that is away', () => {
  const escapes = String.raw`\n`.repeat(4_000_000);
  expect(() => refuseOtherPlaces(Buffer.from(`{"a":"${escapes}"}`))).toThrow(
    expect.objectContaining({ refusal: 'unsound' }),
  );
  const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  expect(() => refuseOtherPlaces(Buffer.from(deep))).not.toThrow();
});

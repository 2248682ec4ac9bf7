import { describe, expect, it } from 'vitest';
import { faultOfBlock, isAllowedAddress } from '../../control-plane/services/organizations/keys/allowed-addresses.js';

describe('an address that an API key allows', () => {
  it.each([
    ['192.0.2.7', ['192.0.2.7'], true],
    ['192.0.2.8', ['192.0.2.7'], false],
    ['192.0.2.255', ['192.0.2.0/24'], true],
    ['192.0.3.0', ['192.0.2.0/24'], false],
    // A block may name any of its addresses.
    ['192.0.2.1', ['192.0.2.200/24'], true],
    ['203.0.113.9', ['192.0.2.0/24', '2001:db8::/32', '203.0.113.8/31'], true],
    ['2001:db8:ffff::1', ['2001:db8::/32'], true],
    ['2001:0DB8:0:0:0:0:0:1', ['2001:db8::1'], true],
    ['2001:db9::1', ['2001:db8::/32'], false],
    // A socket for both families shows IPv4 like this.
    ['::ffff:192.0.2.7', ['192.0.2.0/24'], true],
    ['::ffff:c000:207', ['192.0.2.7'], true],
    ['::ffff:198.51.100.1', ['192.0.2.0/24'], false],
    // All of IPv6 is none of IPv4, and the other way round.
    ['192.0.2.7', ['::/0'], false],
    ['::ffff:192.0.2.7', ['::/0'], false],
    ['2001:db8::1', ['0.0.0.0/0'], false],
    ['2001:db8::1', ['::/0'], true],
    ['192.0.2.7', ['0.0.0.0/0'], true],
    ['fe80::1%eth0', ['fe80::/10'], true],
    ['', ['0.0.0.0/0', '::/0'], false],
    ['unknown', ['0.0.0.0/0', '::/0'], false],
    ['192.0.2.7:4711', ['0.0.0.0/0', '::/0'], false],
    ['192.0.2.7', [], false],
  ])('%s of %j: %s', (address, blocks, isAllowed) => {
    expect(isAllowedAddress(blocks, address)).toBe(isAllowed);
  });
});

it.each(['192.0.2.1', '192.0.2.0/24', '0.0.0.0/0', '2001:db8::1', '2001:db8::/32', '::/0', '::1/128'])(
  '%s can be allowed',
  (text) => expect(faultOfBlock(text)).toBeUndefined(),
);

it.each([
  ['', /is no IPv4 or IPv6 address/],
  ['localhost', /is no IPv4/],
  ['192.0.2', /is no IPv4/],
  ['192.0.2.1/33', /is no IPv4/],
  ['192.0.2.1/', /is no IPv4/],
  ['192.0.2.1/-1', /is no IPv4/],
  ['192.0.2.1/24/24', /is no IPv4/],
  [' 192.0.2.1', /is no IPv4/],
  ['2001:db8::/129', /is no IPv4/],
  ['fe80::1%eth0', /is no IPv4/],
  ['::ffff:192.0.2.1', /write it as 192\.0\.2\.1/],
  ['::ffff:0:0/96', /write it as 192\.0\.2\.1/],
])('%j cannot: %s', (text, fault) => expect(faultOfBlock(text)).toMatch(fault));

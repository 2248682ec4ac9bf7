import { expect, it } from 'vitest';
import { countNear, networkOf, widerNetworkOf } from '../../control-plane/domain/network.js';

it.each([
  ['198.51.100.7', '198.51.100.7'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
  ['::FFFF:198.51.100.117', '198.51.100.117'],
  ['2001:db8::ffff:198.51.100.7', '2001:db8:0::/48'],
  ['::1:2:3:4:5:6:7', '0:1:2::/48'],
  ['1::2:3:4:5:6:7', '1:0:2::/48'],
  ['1:2::', '1:2:0::/48'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
  ['2001:0DB8:0001::', '2001:db8:1::/48'],
  ['2001:db8::9', '2001:db8:0::/48'],
  ['::1', '0:0:0::/48'],
  ['fe80::1%eth0', 'fe80:0:0::/48'],
])('%s is counted with %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

it.each([
  ['198.51.100.7', '198.51.0.0/16'],
  ['2001:db8:1::/48', '2001:db8::/32'],
  ['0:0:0::/48', '0:0::/32'],
  ['', ''],
])('of the wider network of %s is %s', (network, wider) => {
  expect(widerNetworkOf(network)).toBe(wider);
});

it('counts the networks in the same wider one, without those that are unknown', () => {
  expect(countNear('198.51.100.7', ['198.51.1.1', '198.51.100.7', '198.52.100.7', null])).toBe(2);
});

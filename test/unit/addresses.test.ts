import { expect, it } from 'vitest';
import { isLoopback, parseAddress } from '../../shared/network/addresses.js';
import { SetupError } from '../../shared/coded-error.js';

it.each([
  ['127.0.0.1:8080', '127.0.0.1', 8080],
  ['host.example:0', 'host.example', 0],
  ['host:65535', 'host', 65_535],
  ['[::1]:443', '::1', 443],
  ['[2001:db8::1]:443', '2001:db8::1', 443],
])('%s is an address', (address, host, port) => {
  expect(parseAddress('X', address)).toEqual({ host, port });
});

it.each([
  '',
  'host',
  'host:',
  ':80',
  'host:65536',
  'host:99999',
  'host:123456',
  'host:80:90',
  'host:80 ',
  'host:8x',
  '::1:80',
  '[]:80',
  '[::1]',
  'x[::1]:80',
  'http://host:80',
])('%j is none', (address) => {
  const parse = () => parseAddress('GPURENT_X', address);
  expect(parse).toThrow(SetupError);
  expect(parse).toThrow(`GPURENT_X is "${address}"; give HOST:PORT, such as 127.0.0.1:8080`);
});

it.each([
  ['localhost', true],
  ['::1', true],
  ['127.0.0.1', true],
  ['127.255.255.254', true],
  ['128.0.0.1', false],
  ['10.0.0.127', false],
  ['127.evil.example', false],
  ['localhost.example', false],
  ['::2', false],
  ['', false],
])('%s is this machine alone: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});

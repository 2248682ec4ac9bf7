import { expect, it } from 'vitest';
import { workloadLink } from '../../control-plane/domain/instances/workload-link.js';

const instanceId = '6a9141c8-a6f4-4f0b-851f-967ec9c792c4';

it.each([
  ['https://gpu1.example.com:20001/lab', 'gpu1.example.com', true],
  [`https://${instanceId}.gpu1.example.com:20001/lab`, 'gpu1.example.com', true],
  ['https://other.gpu1.example.com:20001/lab', 'gpu1.example.com', false],
  [`https://${instanceId}.evil.example/`, 'gpu1.example.com', false],
  [`https://${instanceId}.gpu1.example.com.evil.example/`, 'gpu1.example.com', false],
  ['http://203.0.113.7:20001/', '203.0.113.7', true],
  [`http://${instanceId}.203.0.113.7:20001/`, '203.0.113.7', false],
  ['http://[2001:db8::7]:20001/', '2001:db8::7', true],
  [`https://${instanceId}.gpu.example.com/`, 'gpu.example.com', true],
  [`https://${instanceId}.gpu.node7/`, 'gpu.node7', true],
  [`https://${instanceId}.1gpu.example.com/`, '1gpu.example.com', true],
  [`http://${instanceId}.localhost/`, 'localhost', true],
  ['https://GPU1.example.com/', 'Gpu1.Example.com', true],
  ['ftp://gpu1.example.com/', 'gpu1.example.com', false],
  ['https://:password@gpu1.example.com/', 'gpu1.example.com', false],
  ['no link', 'gpu1.example.com', false],
  ['https://gpu1.example.com/', 'no address', false],
  [`http://user@gpu1.example.com:20001/`, 'gpu1.example.com', false],
])('%s of a host at %s is shown: %s', (link, publicAddress, isShown) => {
  expect(workloadLink(link, { publicAddress, instanceId })).toBe(isShown ? link : null);
});

it('is no longer than the column for it', () => {
  const home = { publicAddress: 'gpu1.example.com', instanceId };
  const link = 'https://gpu1.example.com/'.padEnd(2_048, 'x');
  expect(workloadLink(link, home)).toBe(link);
  expect(workloadLink(`${link}x`, home)).toBeNull();
});

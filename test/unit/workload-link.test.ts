import { expect, it } from 'vitest';
import { workloadLink } from '../../control-plane/domain/workload-link.js';

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
  [`http://user@gpu1.example.com:20001/`, 'gpu1.example.com', false],
])('%s of a host at %s is shown: %s', (link, publicAddress, isShown) => {
  expect(workloadLink(link, { publicAddress, instanceId })).toBe(isShown ? link : null);
});

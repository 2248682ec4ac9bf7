import dns from 'node:dns';
import { expect, it, vi } from 'vitest';
import { EnrollRequest } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { clientOf } from '../../agent/link/channel.js';

it('an agent asks no name server how to speak to its control plane', async () => {
  const asked = vi.spyOn(dns.promises, 'resolveTxt').mockResolvedValue([]);
  // Nothing listens there.
  const client = clientOf('localhost:1', null);
  const error = await new Promise((resolve) => client.enroll(EnrollRequest.create(), resolve));
  client.close();
  expect(String(error)).toContain('UNAVAILABLE');
  expect(asked).not.toHaveBeenCalled();
  asked.mockRestore();
});

import { expect, it } from 'vitest';
import { judgeGpuStart, judgeToolkit, type ToolkitFacts } from '../../agent/doctor/toolkit.js';

const WELL: ToolkitFacts = {
  docker: '24.0.7',
  hasRuntime: true,
  hookSince: 1e3,
  dockerSince: 2e3,
  hasCli: true,
  config: '[nvidia-container-runtime]\n#mode = "cdi"\nmode = "auto"\n',
  hasCdi: false,
};
const CDI = { config: '[nvidia-container-runtime]\nmode = "cdi"\n' };

it.each<[Partial<ToolkitFacts>, 'good' | 'doubtful' | 'bad', RegExp]>([
  [{}, 'good', /^Docker knows/],
  [{ hasRuntime: false }, 'good', /^Docker knows/],
  [{ dockerSince: null }, 'good', /^Docker knows/],
  [{ hasRuntime: false, hookSince: null }, 'bad', /^Docker cannot attach/],
  [{ hookSince: null }, 'bad', /does not find nvidia-container-runtime-hook/],
  [{ hasCli: false }, 'bad', /nvidia-container-cli is missing/],
  [{ hookSince: 3_000 }, 'doubtful', /started before the container toolkit/],
  [CDI, 'bad', /CDI, which Docker 24\.0\.7 does not know/],
  [{ ...CDI, docker: '28.1.0' }, 'bad', /no CDI device is described/],
  [{ ...CDI, docker: '28.1.0', hasCdi: true }, 'good', /^Docker knows/],
])('the container toolkit with %j is %s', (facts, verdict, what) => {
  expect(judgeToolkit({ ...WELL, ...facts })).toMatchObject({ verdict, what: expect.stringMatching(what) as string });
});

it('doctor shows what a test container has shown', () => {
  expect(judgeGpuStart({ kind: 'passed', reason: '' })).toMatchObject({ verdict: 'good' });
  const failed = judgeGpuStart({ kind: 'failed', reason: 'invoking the hook directly is not supported' });
  expect(failed).toMatchObject({ verdict: 'bad', what: expect.stringContaining('invoking the hook') as string });
  expect(failed.advice).toContain('nvidia-ctk config');
  expect(judgeGpuStart({ kind: 'not tested', reason: 'no GPU is free' })).toEqual({
    verdict: 'good',
    what: 'not tested: no GPU is free',
  });
});

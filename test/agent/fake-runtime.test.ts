import { describe } from 'vitest';
import { FakeRuntime } from '../harness/fake-runtime.js';
import { ManualClock } from '../harness/manual-clock.js';
import { describeRuntime } from '../suites/runtime-suite.js';

describe('the fake runtime', () => {
  describeRuntime(async () => {
    const ports = { first: 40_000, last: 40_009 };
    const runtime = new FakeRuntime(new ManualClock(), ports);
    return {
      runtime,
      ports,
      image: 'image:1',
      async takePort(port) {
        runtime.takenPorts.add(port);
        return async () => void runtime.takenPorts.delete(port);
      },
      print: async (instanceId, line) => runtime.print(instanceId, line),
      exit: async (instanceId, code) => runtime.exit(instanceId, code),
    };
  });
});

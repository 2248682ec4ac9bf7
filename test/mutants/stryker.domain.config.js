import { common } from './stryker.js';

/** The pure rules. */
export default {
  ...common('domain'),
  mutate: [
    'control-plane/domain/**/*.ts',
    'agent/domain/**/*.ts',
    'shared/{addresses,forbidden-networks,image-reference}.ts',
  ],
  thresholds: { high: 95, low: 90, break: 90 },
};

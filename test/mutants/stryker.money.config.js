import { common } from './stryker.js';

/** What moves balances. */
export default { ...common('money'), mutate: ['control-plane/services/{billing,metering}/**/*.ts'] };

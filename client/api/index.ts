export { connect, type Call, type ConnectOptions, type Gpurent } from './connect.js';
export { ApiError, EventsExpiredError, UnreachableError, type ErrorBody, type ErrorCode } from './errors.js';
export type { FollowOptions, GpurentEvent } from './events.js';
export type { components, operations, paths } from './gen/schema.js';

import type { components, operations } from './gen/schema.js';

/** What an operator gives a new template. */
export type TemplateOfOperator = operations['createSystemTemplate']['requestBody']['content']['application/json'];
export type Instance = components['schemas']['Instance'];

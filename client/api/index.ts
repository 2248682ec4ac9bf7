export { connect, type Call, type ConnectOptions, type Gpurent } from './connect.js';
export { ApiError, EventsExpiredError, UnreachableError, type ErrorBody, type ErrorCode } from './errors.js';
export type { FollowOptions, GpurentEvent } from './events.js';
export type { components, operations, paths } from './gen/schema.js';

import { MINUTE_MS } from './time.js';

/**
 * The protocol versions of this build, inclusive: its own and the one before, so that either side can be upgraded first.
 * Version 2 added TLS with host certificates, and request ids.
 */
export const PROTOCOL_MIN = 1;
export const PROTOCOL_MAX = 2;

/** The largest message from a host, in bytes. */
const MAX_AGENT_MESSAGE_BYTES = 1024 * 1024;
/** The largest message to a host, in bytes: it fits a workload with the largest environment that the API accepts. */
const MAX_CONTROL_MESSAGE_BYTES = 8 * 1024 * 1024;

/** HTTP/2 keepalive for both ends, which notice a dead peer within 30 seconds. */
const KEEPALIVE_OPTIONS = {
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.keepalive_permit_without_calls': 1,
} as const;

/** Without keepalive. */
export const NO_KEEPALIVE = { 'grpc.keepalive_time_ms': -1 } as const;

export const AGENT_OPTIONS = {
  ...KEEPALIVE_OPTIONS,
  // Otherwise grpc-js asks DNS for a TXT record with its settings. Where no name server answers, that keeps a process from ending
  // for
  // 20 seconds.
  'grpc.service_config_disable_resolution': 1,
  'grpc.max_send_message_length': MAX_AGENT_MESSAGE_BYTES,
  'grpc.max_receive_message_length': MAX_CONTROL_MESSAGE_BYTES,
} as const;

export const GATEWAY_OPTIONS = {
  ...KEEPALIVE_OPTIONS,
  'grpc.max_send_message_length': MAX_CONTROL_MESSAGE_BYTES,
  'grpc.max_receive_message_length': MAX_AGENT_MESSAGE_BYTES,
  'grpc.max_connection_idle_ms': MINUTE_MS,
  // Its statistics of each connection and call have no reader here.
  'grpc.enable_channelz': 0,
} as const;

/** With TLS each host has its own connection: it needs one stream, and briefly another one to renew its certificate. */
export const STREAMS_OF_A_HOST = { 'grpc.max_concurrent_streams': 4 } as const;

export const HEARTBEAT_MS = 10_000;

/** The metadata entry of a refusal that says after how many milliseconds to dial again. */
export const REDIAL_AFTER = 'redial-after-ms';

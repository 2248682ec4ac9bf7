/** The wire's versions that this build speaks, inclusive. */
export const PROTOCOL_MIN = 1;
export const PROTOCOL_MAX = 1;

/** The largest message that either side takes, in bytes. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;

/** HTTP/2 keepalive for both ends: a dead peer is noticed within 30 seconds. */
export const KEEPALIVE_OPTIONS = {
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 10_000,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
  'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
} as const;

export const HEARTBEAT_MS = 10_000;

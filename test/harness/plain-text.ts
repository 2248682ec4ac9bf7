import type { TlsSettings } from '../../control-plane/config.js';

/** Both listeners, on loopback. */
export const PLAIN_TEXT: TlsSettings = { http: false, grpc: false, names: [] };

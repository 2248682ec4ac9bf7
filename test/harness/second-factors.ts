import { TOTP } from 'otpauth';
import type { ApiClient } from './api-client.js';
import type { TestControlPlane } from './control-plane.js';

/** Returns the code that an authenticator app shows at a time, in milliseconds since 1970. */
export function codeAt(secret: string, at: number): string {
  return TOTP.generate({ secret: TOTP_SECRET(secret), timestamp: at });
}

const TOTP_SECRET = (secret: string) => new TOTP({ secret }).secret;

export interface App {
  id: string;
  secret: string;
  recoveryCodes: string[];
}

/** Adds an authenticator app to an account whose session has a fresh proof. The code of this time is used then. */
export async function addApp(test: TestControlPlane, api: ApiClient, name = 'phone'): Promise<App> {
  const { id, secret } = await api.post<{ id: string; secret: string }>('/v1/me/second-factors/totp');
  const added = await api.post<{ factor: { id: string }; recovery_codes: string[] | null }>(
    '/v1/me/second-factors/totp/confirm',
    { id, code: codeAt(secret, test.clock.now()), name },
  );
  return { id: added.factor.id, secret, recoveryCodes: added.recovery_codes ?? [] };
}

/** Returns the next code of an app, once its time has come. */
export function nextCode(test: TestControlPlane, { secret }: Pick<App, 'secret'>): string {
  test.clock.advance(30_000);
  return codeAt(secret, test.clock.now());
}

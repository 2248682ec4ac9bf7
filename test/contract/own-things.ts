import type { Renter, TestControlPlane } from '../harness/control-plane.js';

/** Types the code of a program that waits, and returns its id. */
export async function typedDeviceCode(test: TestControlPlane, { api }: Renter): Promise<string> {
  const { user_code } = await test.api.post<{ user_code: string }>('/v1/auth/device', { name: 'program' });
  return (await api.post<{ id: string }>('/v1/me/device-codes', { user_code })).id;
}

/** Opens a session that nobody uses, and returns its id. */
export async function idleSession(test: TestControlPlane, { api, email }: Renter): Promise<string> {
  await test.api.post('/v1/auth/sign-in', { email, password: 'a renter password' });
  const { items } = await api.get<{ items: { id: string; is_current: boolean }[] }>('/v1/auth/sessions');
  return items.find(({ is_current }) => !is_current)?.id ?? '';
}

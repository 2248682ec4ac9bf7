import { setTimeout as pause } from 'node:timers/promises';
import { MINUTE_MS } from '../../shared/time.js';
import { createAccount } from '../../control-plane/services/identity/sign-in/sign-up.js';
import type { ControlPlane } from '../../control-plane/app.js';
import { TestSmtp } from '../harness/smtp.js';
import type { Benchmark } from './benchmark.js';
import { MeasuredControlPlane } from './measured-control-plane.js';

const TRIES = 200;
const WARM_UP = 10;
const WRONG = 'a password that nobody has';

/** Requests of strangers that name an address. */
const REQUESTS: Readonly<Record<string, { path: string; body: object }>> = {
  'sign-in': { path: '/v1/auth/sign-in', body: { password: WRONG } },
  'password reset': { path: '/v1/auth/password-reset', body: {} },
  'sign-up': { path: '/v1/auth/sign-up', body: { password: WRONG, name: 'Somebody' } },
};

/**
 * Compares how long answers take for addresses with an account and without one, each with 200 tries, with mail and the passwords of
 * production; and how long the next answer takes. `slower` is the chance that one for an account takes longer than one for no account: at
 * 0.5 the time tells nothing, and between 0.41 and 0.59 these tries cannot tell it from chance (three standard deviations).
 */
export const accountTiming: Benchmark = async () => {
  const smtp = await TestSmtp.start();
  const controlPlane = await MeasuredControlPlane.start({
    GPURENT_SMTP_SERVER: `${smtp.settings.host}:${smtp.settings.port}`,
    GPURENT_MAIL_FROM: 'noreply@gpus.example',
    GPURENT_PUBLIC_URL: 'https://gpus.example',
  });
  try {
    await controlPlane.prepare(addAccounts);
    const results: Record<string, number> = {};
    for (const [name, request] of Object.entries(REQUESTS))
      Object.assign(results, await compare(controlPlane, name, request));
    return results;
  } finally {
    await controlPlane.stop();
    await smtp.stop();
  }
};

const known = (index: number) => `known-${index}@example.com`;
const unknown = (index: number) => `nobody-${index}@example.com`;

async function addAccounts({ platform }: ControlPlane): Promise<void> {
  const passwordHash = await platform.passwords.hash('a renter password');
  platform.store.transact((tx) => {
    const account = { name: 'Renter', passwordHash, isOperator: false, email_verified_at: null };
    for (let index = 0; index < WARM_UP + TRIES; index++)
      createAccount(tx, { ...account, email: known(index) }, undefined, 'network');
  });
}

async function compare(
  controlPlane: MeasuredControlPlane,
  name: string,
  { path, body }: { path: string; body: object },
): Promise<Record<string, number>> {
  const api = controlPlane.measured();
  const times = { known: [] as number[], unknown: [] as number[] };
  const next = { known: [] as number[], unknown: [] as number[] };
  const timed = async (email: string): Promise<[number, number]> => {
    const began = performance.now();
    const { status } = await api.request('POST', path, { ...body, email });
    const answered = performance.now();
    // So many links are asked for in a minute.
    if (status === 429) return pause(MINUTE_MS).then(() => timed(email));
    if (status !== 401 && status !== 202) throw new Error(`${path} answers ${status}`);
    await api.request('GET', '/healthz');
    return [answered - began, performance.now() - answered];
  };
  for (let index = 0; index < WARM_UP + TRIES; index++) {
    const kinds = Math.random() < 0.5 ? (['known', 'unknown'] as const) : (['unknown', 'known'] as const);
    for (const kind of kinds) {
      const [own, after] = await timed(kind === 'known' ? known(index) : unknown(index));
      if (index < WARM_UP) continue;
      times[kind].push(own);
      next[kind].push(after);
    }
  }
  return {
    [`${name}, account, ms`]: hundredth(median(times.known)),
    [`${name}, no account, ms`]: hundredth(median(times.unknown)),
    [`${name}, slower`]: hundredth(slower(times.known, times.unknown)),
    [`${name}, the next answer, slower`]: hundredth(slower(next.known, next.unknown)),
  };
}

/** Returns the chance that one of the former is greater than one of the latter. */
function slower(ones: readonly number[], others: readonly number[]): number {
  const wins = ones.map((one) => others.filter((other) => one > other).length);
  return wins.reduce((sum, count) => sum + count, 0) / (ones.length * others.length);
}

const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
const hundredth = (value: number) => Math.round(value * 100) / 100;

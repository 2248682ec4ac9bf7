import { SetupError } from '../../shared/coded-error.js';
import type { PaymentProvider } from '../domain/money/payment.js';
import { manualPayments } from './manual.js';
import { STRIPE_SETTINGS, openStripe, type SettingsReader } from './stripe.js';

/** Reads the settings of a payment provider at once; the returned function loads its library and opens it. */
type Provider = (settings: SettingsReader) => () => PaymentProvider;

const PROVIDERS: Readonly<Record<string, Provider>> = {
  manual: () => () => manualPayments,
  stripe: openStripe,
};

/** The settings of all providers, without GPURENT_PAYMENTS. */
export const PROVIDER_SETTINGS: readonly string[] = STRIPE_SETTINGS;

/**
 * Reads the settings of the provider that GPURENT_PAYMENTS names. Throws SetupError for an unknown name, a missing or a bad
 * setting.
 */
export function paymentProvider(name: string, settings: SettingsReader): () => PaymentProvider {
  const provider = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
  if (!provider) throw new SetupError(`GPURENT_PAYMENTS is "${name}"; give ${Object.keys(PROVIDERS).join(' or ')}`);
  return provider(settings);
}

import { SetupError } from '../../shared/coded-error.js';
import type { PaymentProvider } from '../domain/payment.js';
import { manualPayments } from './manual.js';
import { STRIPE_SETTINGS, openStripe, type SettingsReader } from './stripe.js';

/** Opens the provider that GPURENT_PAYMENTS names. Its settings are read at once; its library is loaded when it is opened. */
type Provider = (settings: SettingsReader) => () => PaymentProvider;

const PROVIDERS: Readonly<Record<string, Provider>> = {
  manual: () => () => manualPayments,
  stripe: openStripe,
};

/** Every setting of a provider, beside GPURENT_PAYMENTS. */
export const PROVIDER_SETTINGS: readonly string[] = STRIPE_SETTINGS;

/** Reads the settings of a provider. Throws SetupError for an unknown one, and what `settings` throws. */
export function paymentProvider(name: string, settings: SettingsReader): () => PaymentProvider {
  const provider = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
  if (!provider) throw new SetupError(`GPURENT_PAYMENTS is "${name}"; give ${Object.keys(PROVIDERS).join(' or ')}`);
  return provider(settings);
}

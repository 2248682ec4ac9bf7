import { fetchDocument } from './openapi-conformance.js';
import { TestControlPlane } from './control-plane.js';

/** Nothing is ever asked of it: a provider is there so that its webhook is. */
const stripe = { secretKey: 'unused', webhookSecret: 'unused', returnUrl: 'http://localhost', apiUrl: undefined };

/** Prints the OpenAPI document, with every route that a control plane can have. */
const test = await TestControlPlane.start({ stripe });
process.stdout.write(`${JSON.stringify(await fetchDocument(test.url), null, 2)}\n`);
await test.stop();

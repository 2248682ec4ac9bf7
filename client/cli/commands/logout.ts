import { ApiError } from '../../api/index.js';
import { usageError } from '../errors/cli-error.js';
import { explain } from '../errors/explain.js';
import type { Define } from '../invocation/define.js';

export const define: Define = (command, invocation) => {
  command.action(async () => {
    const found = invocation.contexts.find(invocation.options.context);
    if (!found) throw usageError('there is no context to forget', 'List them: gpurent context');
    const { name, context } = found;
    const { url, token, email } = context;
    invocation.contexts.remove(name);
    // An API key stays valid: it belongs to the organization.
    if (email !== null) {
      await invocation
        .connect(url, { token })
        .post('/v1/auth/sign-out')
        .catch((error: unknown) => {
          if (error instanceof ApiError && error.is('TOKEN_INVALID')) return;
          invocation.note(`${explain(error).message}; the session itself was not ended: end it at ${url}/account`);
        });
    }
    invocation.object({ context: name, url }, () => [`Signed out of ${url}. The context ${name} is forgotten.`]);
  });
};

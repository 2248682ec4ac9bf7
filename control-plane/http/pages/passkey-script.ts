/**
 * The only script of the pages, served as a file of this origin to those that use it. It shows forms with `data-passkey` (`create` or
 * `get`), asks the browser with `data-options` when they are sent, and sends the answer in the field `passkey`. In forms with
 * `data-fragment`, it moves the fragment of the address into the field of that name.
 */
export const PASSKEY_SCRIPT = `'use strict';
(() => {
  const bytesOf = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (char) => char.charCodeAt(0));
  const textOf = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\\+/g, '-')
      .replace(/\\//g, '_')
      .replace(/=+$/, '');
  const withBytes = (options) => ({
    ...options,
    challenge: bytesOf(options.challenge),
    ...(options.user ? { user: { ...options.user, id: bytesOf(options.user.id) } } : {}),
    ...listed(options, 'excludeCredentials'),
    ...listed(options, 'allowCredentials'),
  });
  const listed = (options, name) =>
    options[name] ? { [name]: options[name].map((each) => ({ ...each, id: bytesOf(each.id) })) } : {};
  const answerOf = ({ id, rawId, type, response, authenticatorAttachment }) => {
    const names = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle'];
    const fields = names.flatMap((name) => (response[name] ? [[name, textOf(response[name])]] : []));
    return {
      id,
      rawId: textOf(rawId),
      type,
      response: Object.fromEntries(fields),
      clientExtensionResults: {},
      ...(authenticatorAttachment ? { authenticatorAttachment } : {}),
    };
  };
  const ask = (form) => {
    const publicKey = withBytes(JSON.parse(form.dataset.options));
    return form.dataset.passkey === 'create'
      ? navigator.credentials.create({ publicKey })
      : navigator.credentials.get({ publicKey });
  };
  for (const form of document.querySelectorAll('form[data-fragment]')) {
    const field = form.elements[form.dataset.fragment];
    if (location.hash) field.value = location.hash.slice(1);
    history.replaceState(null, '', location.pathname);
    form.querySelector('[data-problem]').textContent = field.value ? '' : 'The address has no link. Ask for a new one.';
    form.querySelector('fieldset').disabled = !field.value;
  }
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    const problem = form.querySelector('[data-problem]');
    if (!window.PublicKeyCredential) {
      problem.textContent = 'This browser has no passkeys.';
      continue;
    }
    form.querySelector('fieldset').disabled = false;
    problem.textContent = '';
    form.addEventListener('submit', async (event) => {
      if (form.elements.passkey.value) return;
      event.preventDefault();
      problem.textContent = '';
      try {
        form.elements.passkey.value = JSON.stringify(answerOf(await ask(form)));
      } catch (error) {
        problem.textContent =
          error.name === 'InvalidStateError'
            ? 'This device has a passkey of this account already.'
            : 'The browser has given no passkey. Try again.';
        return;
      }
      form.requestSubmit();
    });
  }
})();
`;

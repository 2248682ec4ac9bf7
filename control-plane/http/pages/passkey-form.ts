import { FORM_TOKEN, fieldOf, type Field, type Filled } from './forms.js';
import { html, type Html } from './html.js';

/** A form that the script of passkeys sends, with what a passkey has answered. */
export interface PasskeyForm {
  action: string;
  ceremony: 'create' | 'get';
  /** What the browser is asked with. */
  options: object;
  fields: readonly Field[];
  button: string;
}

/** The field with the answer. */
export const PASSKEY: Field = { name: 'passkey', label: null, wrong: 'The passkey has given no answer. Try again.' };

/** Returns a form for a passkey. Without script it can be read, but not sent. */
export function passkeyForm({ action, ceremony, options, fields, button }: PasskeyForm, filled: Filled): Html {
  return html`<form
    method="post"
    action="${action}"
    data-passkey="${ceremony}"
    data-options="${JSON.stringify(options)}"
  >
    <fieldset disabled>
      <input type="hidden" name="${FORM_TOKEN}" value="${filled.formToken}" />
      <input type="hidden" name="${PASSKEY.name}" />
      ${fields.map((field) => fieldOf(field, filled, false))}
      <button>${button}</button>
    </fieldset>
    <p class="wrong" role="alert" data-problem>
      Passkeys need the script of this page, which this browser does not run.
    </p>
  </form>`;
}

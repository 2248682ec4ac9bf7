import { html, type Html, type Part } from './html.js';

/** A field of a form. */
export interface Field {
  name: string;
  /** Null: the field is not shown, and carries a value from the address of the page. */
  label: string | null;
  /** What is wrong with every value that the field does not take. */
  wrong: string;
  type?: 'text' | 'email' | 'password' | 'checkbox';
  autocomplete?: string;
  hint?: string;
  isOptional?: true;
}

/** What a form is shown with: after a refusal, what was typed and what is wrong with it. */
export interface Filled {
  values: Readonly<Record<string, string>>;
  /** What is wrong with a field, by its name. */
  errors: ReadonlyMap<string, string>;
  /** What proves that the form comes from this control plane. */
  formToken: string;
}

export interface Form {
  action: string;
  fields: readonly Field[];
  button: string;
  /** Whose password the form changes, for password managers; it is neither shown nor sent. */
  username?: string;
  /** A button of less weight. */
  isQuiet?: true;
  /** What tells this form from others of the page, for people who hear it. */
  about?: string;
}

/** The name of the field with the proof. */
export const FORM_TOKEN = 'form_token';

/** Returns a form. It keeps what was typed, except passwords. */
export function formOf({ action, fields, button, username, isQuiet, about }: Form, filled: Filled): Html {
  const first = fields.find(({ name, label }) => label !== null && filled.errors.has(name))?.name;
  return html`<form method="post" action="${action}">
    <input type="hidden" name="${FORM_TOKEN}" value="${filled.formToken}" />
    ${username !== undefined && html`<input type="email" autocomplete="username" value="${username}" readonly hidden />`}
    ${fields.map((field) => fieldOf(field, filled, field.name === first))}
    <button ${isQuiet && html`class="quiet"`} ${about !== undefined && html`aria-label="${`${button}: ${about}`}"`}>
      ${button}
    </button>
  </form>`;
}

export function fieldOf(field: Field, { values, errors }: Filled, isFirstWrong: boolean): Part {
  const { name, label, type = 'text', autocomplete, hint, isOptional } = field;
  const value = values[name] ?? '';
  if (label === null) return value !== '' && html`<input type="hidden" name="${name}" value="${value}" />`;
  const error = errors.get(name);
  const described = [hint !== undefined && `${name}-hint`, error !== undefined && `${name}-wrong`].filter(Boolean);
  const attributes = html`id="${name}" name="${name}" type="${type}"
  ${described.length > 0 && html`aria-describedby="${described.join(' ')}"`}
  ${error !== undefined && html`aria-invalid="true"`} ${isFirstWrong && html`autofocus`}`;
  const notes = [
    hint !== undefined && html`<p class="hint" id="${`${name}-hint`}">${hint}</p>`,
    error !== undefined && html`<p class="wrong" id="${`${name}-wrong`}">${error}</p>`,
  ];
  if (type === 'checkbox')
    return html`<div class="field check">
      <input ${attributes} value="yes" ${value === 'yes' && html`checked`} />
      <label for="${name}">${label}</label>
      ${notes}
    </div>`;
  return html`<div class="field">
    <label for="${name}">${label}</label>
    ${notes}
    <input
      ${attributes}
      ${autocomplete !== undefined && html`autocomplete="${autocomplete}"`}
      ${isOptional === undefined && html`required`}
      ${type !== 'password' && value !== '' && html`value="${value}"`}
    />
  </div>`;
}

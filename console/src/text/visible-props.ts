import { jsx } from 'react/jsx-runtime';
import { visible } from '../../../client/text/visible.js';

export type Props = Readonly<Record<string, unknown>>;

/** Attributes that people read or hear. */
const READ = ['title', 'aria-label', 'alt', 'placeholder'];
/** Elements that hold nothing but text. */
const TEXT_ONLY: readonly unknown[] = ['option', 'title', 'textarea', 'bdi'];
/** Letters that are written from the right, and turn what stands beside them. */
const FROM_THE_RIGHT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/**
 * Returns the properties of an element as they are shown: hidden characters as their numbers, so that no text of a stranger imitates
 * or turns another, and each text from the right for itself. What a form edits stays as it is.
 */
export function visibleProps(type: unknown, props: Props): Props {
  const shown: Record<string, unknown> = { ...props };
  for (const name of READ) if (typeof shown[name] === 'string') shown[name] = visible(shown[name]);
  const isElement = typeof type === 'string' && !TEXT_ONLY.includes(type);
  const child = (each: unknown, key?: number) => {
    if (typeof each !== 'string') return each;
    const text = visible(each);
    return isElement && FROM_THE_RIGHT.test(text) ? jsx('bdi', { children: text }, key) : text;
  };
  const { children } = props;
  if (Array.isArray(children)) shown['children'] = children.map(child);
  else if (typeof children === 'string') shown['children'] = child(children);
  return shown;
}

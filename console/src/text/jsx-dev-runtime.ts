import type { ElementType, Key } from 'react';
import * as react from 'react/jsx-dev-runtime';
import { visibleProps, type Props } from './visible-props.js';

export { Fragment } from 'react/jsx-dev-runtime';
export type { JSX } from 'react/jsx-dev-runtime';

/** Makes an element while the console is developed, as `jsx` does in a release. */
export const jsxDEV = (type: ElementType, props: Props, key: Key | undefined, ...where: [boolean, object?, unknown?]) =>
  react.jsxDEV(type, visibleProps(type, props), key, ...where);

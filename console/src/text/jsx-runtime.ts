import type { ElementType, Key } from 'react';
import * as react from 'react/jsx-runtime';
import { visibleProps, type Props } from './visible-props.js';

export { Fragment } from 'react/jsx-runtime';
export type { JSX } from 'react/jsx-runtime';

/** Makes an element of the console: each of its texts goes through {@link visibleProps}, so that no page can forget it. */
export const jsx = (type: ElementType, props: Props, key?: Key) => react.jsx(type, visibleProps(type, props), key);

/** Makes an element with several children. */
export const jsxs = (type: ElementType, props: Props, key?: Key) => react.jsxs(type, visibleProps(type, props), key);

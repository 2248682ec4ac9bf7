import { encode } from 'uqr';
import { html, type Html } from './html.js';

/** The edge that readers need around a QR code, in its squares. */
const EDGE = 4;

/** Returns a QR code as a picture, dark on white whatever the colours of the page are. */
export function qrCode(text: string): Html {
  const { data } = encode(text, { ecc: 'M', border: EDGE });
  const size = data.length;
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return html`<svg
    class="qr"
    viewBox="0 0 ${size} ${size}"
    role="img"
    aria-label="QR code"
    shape-rendering="crispEdges"
  >
    <path fill="#fff" d="M0 0h${size}v${size}h-${size}z" />
    <path fill="#000" d="${squares.join('')}" />
  </svg>`;
}

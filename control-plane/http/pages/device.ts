import { Type } from 'typebox';
import {
  approveDevice,
  denyDevice,
  typeDeviceCode,
  typedDeviceRequest,
  type DeviceRequest,
} from '../../services/identity/devices/approve-device.js';
import { DEVICE_PAGE } from '../page-paths.js';
import { clientNetwork } from '../access/client.js';
import { userCode } from '../routes/identity/device-codes.js';
import { uuid } from '../schema/schemas.js';
import { timeOf, userOf } from './account.js';
import { formOf, type Field } from './forms.js';
import { html, type Part } from './html.js';
import { noticeOf } from './notices.js';
import { pathTo, type FormSpec, type PageSpec, type View } from './pages.js';

const APPROVE = '/device/approve';
const DENY = '/device/deny';

const CODE: Field = {
  name: 'user_code',
  label: 'Code',
  autocomplete: 'off',
  hint: 'Eight letters, which the program on your other device shows.',
  wrong: 'Type the eight letters.',
};

/** Reads no code from its address: whoever sends a link cannot type for the person. */
export const devicePage: PageSpec = {
  path: DEVICE_PAGE,
  operation: 'showDevice',
  summary: 'The page to type the code of a program that wants to sign in',
  needs: 'session',
  reads: ['done'],
  render: (view) => ({
    title: 'Let a program sign in',
    content: [
      noticeOf(view),
      html`<p>
        Type the code only if you have started the program yourself, just now. Nobody else needs it: not the operator,
        and no support.
      </p>`,
      formOf({ action: DEVICE_PAGE, fields: [CODE], button: 'Continue' }, view),
    ],
  }),
};

const codeBody = Type.Object({ user_code: userCode });

export const deviceForm: FormSpec<typeof codeBody> = {
  servedOnFullDisk: true,
  path: DEVICE_PAGE,
  operation: 'submitDevice',
  summary: 'Look up the program that shows a code',
  page: devicePage,
  fields: [CODE],
  body: codeBody,
  guessable: 'per address',
  words: {
    DEVICE_CODE_INVALID: 'No program waits with this code. Look at it again, or let the program show a new one',
  },
  submit: ({ user_code }, visit) => {
    typeDeviceCode(visit.platform, userOf(visit), user_code, clientNetwork(visit.request));
    return APPROVE;
  },
};

const CODE_ID: Field = { name: 'code_id', label: null, wrong: 'Type the code again.' };

export const approveDevicePage: PageSpec = {
  path: APPROVE,
  operation: 'showApproveDevice',
  summary: 'The page to approve or deny the sign-in of a program',
  needs: 'session',
  render: (view) => {
    const asked = typedDeviceRequest(view.platform, userOf(view));
    return {
      title: 'Let this program sign in?',
      content: asked
        ? question(view, asked)
        : html`<p><a href="${DEVICE_PAGE}">Type the code</a> that the program shows.</p>`,
    };
  },
};

function question(view: View, asked: DeviceRequest): Part {
  const { id, name, device, network, isSameNetwork, created_at } = asked;
  const about = { ...view, values: { ...view.values, code_id: id } };
  return [
    html`<p>
      A program that calls itself <strong>${name}</strong> wants to sign in as ${userOf(view).email}. It could do all
      that you can do.
    </p>`,
    html`<p>
      It asked ${timeOf(created_at)} from <strong>${network}</strong>${device !== null && ` (${device})`}.
      ${isSameNetwork ? 'That is the address that you use now.' : html`<strong>You use another address now.</strong>`}
    </p>`,
    html`<p>
      If you have not started it yourself, or somebody has sent you the code, deny it: it would be somebody else who
      signs in.
    </p>`,
    formOf({ action: DENY, fields: [CODE_ID], button: 'Deny' }, about),
    html`<h2>Approve</h2>`,
    formOf({ action: APPROVE, fields: [CODE_ID], button: 'Let it sign in', isQuiet: true }, about),
  ];
}

const WORDS = { DEVICE_CODE_INVALID: 'This program waits no more, or you have typed another code meanwhile' };
const codeIdBody = Type.Object({ code_id: uuid('The code') });

export const approveDeviceForm: FormSpec<typeof codeIdBody> = {
  servedOnFullDisk: true,
  path: APPROVE,
  operation: 'submitApproveDevice',
  summary: 'Let a program sign in',
  page: approveDevicePage,
  fields: [CODE_ID],
  body: codeIdBody,
  words: WORDS,
  submit: ({ code_id }, visit) => {
    approveDevice(visit.platform, userOf(visit), code_id);
    return pathTo(DEVICE_PAGE, { done: 'device-approved' });
  },
};

export const denyDeviceForm: FormSpec<typeof codeIdBody> = {
  servedOnFullDisk: true,
  path: DENY,
  operation: 'submitDenyDevice',
  summary: 'Refuse to let a program sign in',
  page: approveDevicePage,
  fields: [CODE_ID],
  body: codeIdBody,
  words: WORDS,
  submit: ({ code_id }, visit) => {
    denyDevice(visit.platform, userOf(visit), code_id);
    return pathTo(DEVICE_PAGE, { done: 'device-denied' });
  },
};

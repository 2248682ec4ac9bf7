import type { Role } from '../caller.js';
import type { MailContent, MailItem } from './mail.js';
import { linksOf, type MailLinks } from './mail-links.js';
import { dollars } from '../money/money.js';

/** What a mail says about one thing. */
export interface MailWords {
  subject: string;
  happened: string;
  means: string;
  /** What its reader can do; an address is at the end of its line. */
  todo: string[];
}

function at(time: number): string {
  return `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}

// oxlint-disable-next-line no-control-regex -- what would end a header, or change the order of the text around it
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+/g;

/** Makes one line of a text that a stranger has written, of at most 100 characters, so that it can break no header. */
export function oneLine(text: string): string {
  const line = text.replace(UNPRINTABLE, ' ').trim();
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}

/** Makes one line of what an operator has written. */
function plain(text: string): string {
  return text.replace(UNPRINTABLE, ' ').trim();
}

/** What a mail shows at most of a text that a stranger has chosen. */
const MOST_QUOTED = 40;

/**
 * Quotes a text that a stranger has chosen, of at most 40 characters, in which no mail program finds a link: where it could go on from a
 * dot, a slash or an @, there are brackets.
 */
export function quoted(text: string): string {
  const broken = oneLine(text.normalize('NFKC'))
    .replace(/["\u201c\u201d]/g, "'")
    .replace(/[.\u3002](?=\S)/gu, '[.]')
    .replace(/\/(?=\/)/g, '/ ')
    .replace(/:(?=\S)/g, '[:]')
    .replace(/@/g, '[at]');
  const characters = Array.from(broken);
  const shown = characters.length > MOST_QUOTED ? `${characters.slice(0, MOST_QUOTED - 1).join('')}…` : broken;
  return `"${shown}"`;
}

type Link = Extract<MailItem, { token: string; kind: 'password_reset' | 'sign_up' }>;

const DO_NOT_PASS_ON = 'Do not pass this mail on: whoever has it can do the same.';

const toPay = ({ billing }: MailLinks) => [
  `Pay by card, as an admin of the organization or with the role billing: ${billing}`,
  'Where that is not offered, ask the operator for credit.',
];
const toStop = ({ instances }: MailLinks) => `Or stop the instances that you do not need: ${instances}`;
const toStart = ({ instances }: MailLinks) => `Then start the instances again: ${instances}`;

/** Returns what a mail says about one thing. */
export function wordsOf(item: MailItem, all: MailLinks): MailWords {
  const links = 'organization_id' in item ? linksOf(item.organization_id, all) : all;
  const { api } = links;
  switch (item.kind) {
    case 'invite':
      return inviteWords(item, links);
    case 'balance_low':
      return {
        subject: `The balance of ${quoted(item.organization)} lasts less than ${count(item.hours, 'hour')}`,
        happened: `The balance of the organization ${quoted(item.organization)} is ${dollars(item.balance_micro)}. At what is charged now, it lasts until ${at(item.lasts_until)}.`,
        means:
          'When the balance is used up, all running instances are stopped. Their disks are kept, and cost money from then on.',
        todo: [...toPay(links), toStop(links)],
      };
    case 'balance_exhausted':
      return {
        subject: `The balance of ${quoted(item.organization)} is used up`,
        happened: `The balance of the organization ${quoted(item.organization)} is ${dollars(item.balance_micro)}: it is used up, and running instances are stopped.`,
        means:
          'Their disks are kept, and cost money. Other renters can rent their GPUs. Stopped instances are destroyed with their disks if the balance stays used up for a day and is far enough below zero; you get a mail before that.',
        todo: [...toPay(links), toStart(links)],
      };
    case 'disks_at_risk':
      return {
        subject: `Disks of ${quoted(item.organization)} will be destroyed in ${count(item.hours, 'hour')}`,
        happened: `The organization ${quoted(item.organization)} has not paid: its balance is ${dollars(item.balance_micro)}.`,
        means: `${count(item.instances, 'stopped instance')} will be destroyed with everything on ${item.instances === 1 ? 'its disk' : 'their disks'} at ${at(item.destroyed_at)}. Nobody can bring the data back.`,
        todo: [...toPay(links), 'If you do not need the data, you need not do anything.'],
      };
    case 'paid':
      return {
        subject: `Payment received: ${dollars(item.amount_micro)} for ${quoted(item.organization)}`,
        happened: `The organization ${quoted(item.organization)} has paid ${dollars(item.amount_micro)}.`,
        means: `Its balance is ${dollars(item.balance_micro)} now.`,
        todo: [
          `You need not do anything. All payments and charges: ${links.transactions}`,
          'If nobody of you has paid this, tell the operator.',
        ],
      };
    case 'payment_failed':
      return {
        subject: `Payment failed: ${dollars(item.amount_micro)} for ${quoted(item.organization)}`,
        happened: `A payment of ${dollars(item.amount_micro)} for the organization ${quoted(item.organization)} has failed: the bank or the payment provider has refused it.`,
        means: `Nothing was credited. The balance is ${dollars(item.balance_micro)}.`,
        todo: [`Pay in another way, as an admin of the organization or with the role billing: ${links.billing}`],
      };
    case 'spend_cap':
      return capWords(item, links);
    case 'sign_in':
      return signInWords(item, links);
    case 'suspended':
      return {
        subject: `The organization ${quoted(item.organization)} is suspended`,
        happened: `The operator of ${api} has suspended the organization ${quoted(item.organization)}. The reason: ${plain(item.reason)}`,
        means: `Running instances are stopped, and nothing can be deployed or started. Disks are kept until ${at(item.disks_kept_until)}, and cost money until then. After that they are destroyed with everything on them.`,
        todo: [
          'Ask the operator to restore the organization, if you think that this is wrong.',
          `You can still read everything, pay, and destroy instances: ${links.instances}`,
        ],
      };
    case 'restored':
      return {
        subject: `The organization ${quoted(item.organization)} is restored`,
        happened: `The operator of ${api} has restored the organization ${quoted(item.organization)}. The reason: ${plain(item.reason)}`,
        means: 'Instances can be started and deployed again. Nothing has been started.',
        todo: [`Start the instances that you need: ${links.instances}`],
      };
    case 'suspended_disks':
      return {
        subject: `Disks of ${quoted(item.organization)} will be destroyed in ${count(item.hours, 'hour')}`,
        happened: `The organization ${quoted(item.organization)} is suspended. The reason: ${plain(item.reason)}`,
        means: `${count(item.instances, 'stopped instance')} will be destroyed with everything on ${item.instances === 1 ? 'its disk' : 'their disks'} at ${at(item.destroyed_at)}. Nobody can bring the data back.`,
        todo: [
          'Ask the operator to restore the organization.',
          'If you do not need the data, you need not do anything.',
        ],
      };
    case 'notice':
      return {
        subject: `About the machine ${quoted(item.machine)}, on which ${quoted(item.organization)} has instances`,
        happened: `The operator of ${api} says of the machine ${quoted(item.machine)}: ${plain(item.message)}`,
        means: `The organization ${quoted(item.organization)} has ${count(item.instances, 'instance')} on this machine.`,
        todo: [`Your instances: ${links.instances}`],
      };
    case 'password_reset':
      return passwordResetWords(item, links);
    case 'password_changed':
      return passwordChangedWords(item, links);
    case 'sign_up':
      return signUpWords(item, links);
    case 'sign_up_exists':
      return signUpExistsWords(links);
    case 'second_factor_added':
    case 'second_factor_removed':
      return factorWords(item, links);
    case 'second_factor_removal':
      return factorRemovalWords(item, links);
  }
}

function capWords(item: MailItem & { kind: 'spend_cap' }, links: MailLinks): MailWords {
  const { organization, api_key_id, period, percent, limit_micro, spent_micro } = item;
  const whose =
    api_key_id === null
      ? 'its instances'
      : `what the API key ${api_key_id} has started, and the disks of what it has deployed`;
  const cap = `the cap on the ${period} (UTC)`;
  const isUsedUp = percent >= 100;
  return {
    subject: `${quoted(organization)} has used up ${percent} percent of ${cap}`,
    happened: `The organization ${quoted(organization)} has spent ${dollars(spent_micro)} of ${dollars(limit_micro)} for ${whose}: ${percent} percent of ${cap}.`,
    means: isUsedUp
      ? 'What runs for it is stopped, and cannot be started for it before the cap is raised or the next one begins. The disks and GPUs of these instances are kept, and the disks cost money.'
      : 'When the cap is used up, what runs for it is stopped. The disks and GPUs of these instances are kept.',
    todo: [
      `Raise the cap, as an admin of the organization or with the role billing: ${api_key_id === null ? links.billing : links.keys}`,
      isUsedUp ? toStart(links) : toStop(links),
    ],
  };
}

const AS: Readonly<Record<Role, string>> = {
  admin: 'an admin',
  member: 'a member',
  billing: 'a member with the role billing',
  viewer: 'a viewer',
};

function inviteWords(item: MailItem & { kind: 'invite' }, { api, acceptInvite }: MailLinks): MailWords {
  const { organization, invited_by, role, token, expires_at } = item;
  return {
    subject: 'Invitation to an organization that rents GPUs',
    happened: `Somebody with the account ${quoted(invited_by)} invites you to an organization at ${api}. They call it ${quoted(organization)}.`,
    means: `You would be ${AS[role]} of it. The invitation ends at ${at(expires_at)}, and only works with the e-mail address that got this mail.`,
    todo: [
      `Accept the invitation; if you have no account, you create one there: ${acceptInvite(token)}`,
      'If you do not know this organization, ignore this mail. Do not pass it on: whoever has it knows the token.',
    ],
  };
}

function signInWords({ network, at: time }: MailItem & { kind: 'sign_in' }, { keys, profile }: MailLinks): MailWords {
  return {
    subject: 'A sign-in to your account from a new address',
    happened: `At ${at(time)}, somebody has signed in to your account with its password from the address ${oneLine(network)}. The account has not been used from there before.`,
    means: 'If that was you, everything is in order.',
    todo: [
      `If it was not you, change the password now, which ends all other sessions: ${profile}`,
      `Then remove API keys that you have not made, and SSH keys that are not yours: ${keys}`,
    ],
  };
}

function passwordResetWords({ token, expires_at }: Link, { api, resetPassword }: MailLinks): MailWords {
  return {
    subject: 'Set a new password',
    happened: `Somebody has asked for a new password of your account at ${api}.`,
    means: `The link works once, until ${at(expires_at)}. With the new password, all your sessions end.`,
    todo: [
      `Set a new password: ${resetPassword(token)}`,
      'If it was not you who asked, you need not do anything: your password stays as it is.',
      DO_NOT_PASS_ON,
    ],
  };
}

function passwordChangedWords(
  { at: time }: MailItem & { kind: 'password_changed' },
  { forgotPassword, keys }: MailLinks,
): MailWords {
  return {
    subject: 'Your password was changed',
    happened: `At ${at(time)}, the password of your account was changed.`,
    means: 'If that was you, everything is in order.',
    todo: [
      `If it was not you, ask for a new password now: ${forgotPassword}`,
      `Then remove API keys that you have not made: ${keys}`,
    ],
  };
}

function signUpWords({ token, expires_at }: Link, { api, confirmAddress }: MailLinks): MailWords {
  return {
    subject: 'Confirm your e-mail address',
    happened: `Somebody has signed up with this e-mail address at ${api}.`,
    means: `The account is created once the address is confirmed, with the password of the sign-up. The link works once, until ${at(expires_at)}.`,
    todo: [
      `Confirm the address: ${confirmAddress(token)}`,
      'If it was not you, ignore this mail: there will be no account.',
      DO_NOT_PASS_ON,
    ],
  };
}

function signUpExistsWords({ api, signIn, forgotPassword }: MailLinks): MailWords {
  return {
    subject: 'You have an account already',
    happened: `Somebody has signed up with your e-mail address at ${api}, and you have an account there already.`,
    means: 'Your account stays as it is.',
    todo: [
      `If it was you, sign in: ${signIn}`,
      `If you do not know the password, ask for a new one: ${forgotPassword}`,
      'If it was not you, you need not do anything.',
    ],
  };
}

type FactorItem = MailItem & { kind: 'second_factor_added' | 'second_factor_removed' };

function factorWords({ kind, at: time, factor, name }: FactorItem, links: MailLinks): MailWords {
  const isAdded = kind === 'second_factor_added';
  const what =
    factor === null
      ? 'All second factors'
      : `The ${factor === 'totp' ? 'authenticator app' : 'passkey'} ${quoted(name)}`;
  const byWhom = factor === null ? ' An operator had asked for it a day ago. All your sessions have ended.' : '';
  return {
    subject: `A second factor was ${isAdded ? 'added to' : 'removed from'} your account`,
    happened: `At ${at(time)}, this was ${isAdded ? 'added to' : 'removed from'} your account: ${what}.${byWhom}`,
    means: 'If you know of that, everything is in order.',
    todo: [
      `If it was not you, look at your second factors now: ${links.secondFactors}`,
      `Then change the password, which ends all other sessions: ${links.forgotPassword}`,
    ],
  };
}

function factorRemovalWords(
  { effective_at, reason }: MailItem & { kind: 'second_factor_removal' },
  { api, secondFactors }: MailLinks,
): MailWords {
  return {
    subject: 'Your second factors will be removed',
    happened: `An operator of ${api} was asked to remove all second factors of your account. The reason that the operator gives: ${quoted(reason)}.`,
    means: `At ${at(effective_at)}, they are removed with your recovery codes, and all your sessions end. From then on your password alone opens your account.`,
    todo: [
      'If you have asked for it, you need not do anything. Sign in after that time, and add a second factor again.',
      `If you have not, somebody pretends to be you: cancel it before that time: ${secondFactors}`,
    ],
  };
}

/** Returns the subject of a mail. */
export function subjectOf(content: MailContent, links: MailLinks): string {
  if (content.kind !== 'digest') return wordsOf(content, links).subject;
  const { length } = content.items;
  return `${content.isCut ? 'More than ' : ''}${count(length, 'more message')} in one`;
}

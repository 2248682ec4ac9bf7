import { categoryOf, itemsOf, type MailContent } from './mail.js';
import type { MailLinks } from './mail-links.js';
import { subjectOf, wordsOf, type MailWords } from './mail-words.js';

export interface MailBody {
  subject: string;
  text: string;
  html: string;
}

/** Writes a mail as text and as HTML, without images and scripts. `unsubscribeUrl`: the address that ends it; null: nothing does. */
export function layOut(content: MailContent, links: MailLinks, unsubscribeUrl: string | null): MailBody {
  const parts = itemsOf(content).map((item) => wordsOf(item, links));
  const intro = introOf(content);
  const footer = footerOf(content, links, unsubscribeUrl);
  return {
    subject: subjectOf(content, links),
    text: `${[...intro, ...parts.map((part) => textOf(part, content.kind === 'digest')), `All calls: ${links.docs}`, ['-- ', ...footer].join('\n')].join('\n\n')}\n`,
    html: page([
      ...intro.map(paragraph),
      ...parts.map((part) => htmlOf(part, content.kind === 'digest')),
      `<p>All calls: ${link(links.docs)}</p>`,
      `<hr style="border:0;border-top:1px solid #ccc"><p style="color:#666;font-size:13px">${footer.map(linked).join('<br>')}</p>`,
    ]),
  };
}

function introOf(content: MailContent): string[] {
  if (content.kind !== 'digest') return [];
  const cut = content.isCut ? [' There was more than this mail can tell.'] : [];
  return [`So that you do not get too many mails, this one tells what happened since the last.${cut.join('')}`];
}

function footerOf(content: MailContent, links: MailLinks, unsubscribeUrl: string | null): string[] {
  const from = `This mail is from the GPU marketplace at ${links.api}.`;
  const categories = new Set(itemsOf(content).map(categoryOf));
  if (categories.has('invites'))
    return [
      from,
      'You get this mail because somebody has invited your address.',
      ...(unsubscribeUrl === null ? [] : [`No more invitations by mail: ${unsubscribeUrl}`]),
    ];
  if (categories.has('security'))
    return [from, 'It is about the security of your account, so it cannot be switched off.'];
  const choose = `Choose which mails you get: ${links.profile}`;
  return unsubscribeUrl === null ? [from, choose] : [from, choose, `No more such warnings: ${unsubscribeUrl}`];
}

function textOf({ subject, happened, means, todo }: MailWords, isPart: boolean): string {
  const list = ['What you can do:', ...todo.map((line) => `- ${line}`)].join('\n');
  return [...(isPart ? [`* ${subject}`] : []), happened, means, list].join('\n\n');
}

function htmlOf({ subject, happened, means, todo }: MailWords, isPart: boolean): string {
  const head = isPart ? `<h2 style="font-size:16px">${escapeHtml(subject)}</h2>` : '';
  const list = `<ul>${todo.map((line) => `<li>${linked(line)}</li>`).join('')}</ul>`;
  return `${head}${paragraph(happened)}${paragraph(means)}<p>What you can do:</p>${list}`;
}

function page(parts: string[]): string {
  const style = 'font-family:sans-serif;font-size:15px;line-height:1.4;max-width:600px;color:#222';
  return `<!doctype html>\n<html lang="en"><body style="${style}">\n${parts.join('\n')}\n</body></html>\n`;
}

function paragraph(text: string): string {
  return `<p>${escapeHtml(text)}</p>`;
}

function link(url: string): string {
  return `<a href="${escapeHtml(url)}">${escapeHtml(url)}</a>`;
}

/** Escapes a line of ours and makes a link of the address at its end. */
function linked(line: string): string {
  const [, before = line, url] = /^(.*: )(https?:\S+)$/.exec(line) ?? [];
  return escapeHtml(before) + (url === undefined ? '' : link(url));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for HTML, between tags and in attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

/** The components that open a dialog with the title that they are given. */
const DIALOGS = new Set(['Dialog', 'Confirm', 'ConfirmButton', 'ReasonButton', 'SecretDialog', 'Secret', 'NameDialog']);
const SOURCES = 'console/src';
/** It shows parts to those who build the console, and is in no build. */
const PARTS_PAGE = join('pages', 'parts');

/** A title of a dialog as the source has it: `Destroy … and its … GB disk`. */
export interface DialogTitle {
  title: string;
  file: string;
  /** Matches what is shown. */
  pattern: RegExp;
}

/** Returns the title of every dialog in the console's sources, once. A part that passes a title on has none of its own. */
function dialogTitles(): DialogTitle[] {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.tsx') && !file.startsWith(PARTS_PAGE),
  );
  const found = new Map(files.flatMap((file) => titlesIn(join(SOURCES, file)).map((title) => [title, file] as const)));
  return [...found].map(([title, file]) => ({ title, file, pattern: patternOf(title) }));
}

/** Returns the titles in some of the sources that are none of those that were shown. */
export function missedTitles(shown: ReadonlySet<string>, isMeant: (file: string) => boolean): string[] {
  const missed = dialogTitles().filter(
    ({ file, pattern }) => isMeant(file) && ![...shown].some((title) => pattern.test(title)),
  );
  return missed.map(({ title }) => title).sort();
}

function patternOf(title: string): RegExp {
  if (!/[a-z]/i.test(title))
    throw new Error(`the title ${title} has no word of its own, so every dialog would match it`);
  const escaped = title.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('[^]*')}$`);
}

function titlesIn(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX);
  const titles: string[] = [];
  const look = (node: ts.Node): void => {
    if ((ts.isJsxOpeningElement(node) || ts.isJsxSelfClosingElement(node)) && DIALOGS.has(node.tagName.getText())) {
      const own = titleValues(node.attributes).flatMap((value) => textsIn(value, source));
      const part = ts.findAncestor(node, ts.isFunctionDeclaration)?.name?.text ?? '';
      if (own.length === 0 && !DIALOGS.has(part))
        throw new Error(`${file}: ${part} has a dialog without a title of its own`);
      titles.push(...own);
    }
    ts.forEachChild(node, look);
  };
  look(source);
  return titles;
}

/** Returns what the attribute or the spread property `title` is given. */
function titleValues(attributes: ts.Node): ts.Node[] {
  const values: ts.Node[] = [];
  const look = (node: ts.Node): void => {
    const isTitle =
      (ts.isJsxAttribute(node) || ts.isPropertyAssignment(node)) && node.name.getText() === 'title' && node.initializer;
    if (isTitle) values.push(isTitle);
    else ts.forEachChild(node, look);
  };
  look(attributes);
  return values;
}

/** Returns the texts that an expression can be, `…` where something is put in; also those of functions of its file that it calls. */
function textsIn(node: ts.Node, source: ts.SourceFile): string[] {
  if (ts.isTemplateExpression(node))
    return [node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('')];
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse].flatMap((each) => textsIn(each, source));
  if (ts.isCallExpression(node)) return returnsOf(node.expression.getText(), source);
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isJsxExpression(node) && node.expression) return textsIn(node.expression, source);
  return [];
}

function returnsOf(name: string, source: ts.SourceFile): string[] {
  const texts: string[] = [];
  const look = (node: ts.Node): void => {
    if (ts.isReturnStatement(node) && node.expression) texts.push(...textsIn(node.expression, source));
    ts.forEachChild(node, look);
  };
  for (const statement of source.statements)
    if (ts.isFunctionDeclaration(statement) && statement.name?.text === name) look(statement);
  return texts;
}

import fc from 'fast-check';
import { createElement } from 'react';
import { describe, expect, it } from 'vitest';
import { TerminalText, terminalText } from '../../client/text/terminal-text.js';
import { visible } from '../../client/text/visible.js';
import { visibleProps } from '../../console/src/text/visible-props.js';

describe('hidden characters', () => {
  it.each([
    ['an override of the direction', 'a\u202eb', 'a\\u{202e}b'],
    ['an isolate', '\u2066a\u2069', '\\u{2066}a\\u{2069}'],
    ['an escape', '\u001b[2J', '\\u{1b}[2J'],
    ['an invisible letter', 'pay\u200bpal\ufeff\u3164', 'pay\\u{200b}pal\\u{feff}\\u{3164}'],
    ['hidden tags', 'a\u{e0041}', 'a\\u{e0041}'],
    ['half a pair', '\ud83d', '\\u{d83d}'],
    ['a joiner in a word', 'pay\u200dpal', 'pay\\u{200d}pal'],
    ['a second selector', '\u2714\ufe0f\ufe0f', '\u2714\ufe0f\\u{fe0f}'],
  ])('are shown: %s', (_name, text, shown) => expect(visible(text)).toBe(shown));

  it.each([
    ['lines and tabs', 'a\n\tb'],
    ['a family', '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}'],
    ['a heart on fire, a skin', '\u2764\ufe0f\u200d\u{1f525} \u{1f9d1}\u{1f3fd}\u200d\u{1f4bb}'],
    ['Persian', '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645'],
    ['Hindi', '\u0915\u094d\u200d\u0937'],
    ['accents', 'e\u0301'],
  ])('stay where they shape what is seen: %s', (_name, text) => expect(visible(text)).toBe(text));

  it('are left in no text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(visible(text)).not.toMatch(/(?![\t\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        expect(visible(visible(text))).toBe(visible(text));
      }),
    );
  });
});

describe('properties of an element', () => {
  it('show hidden characters, in children and in what is read out', () => {
    expect(
      visibleProps('a', { children: 'a\u202e', title: 'b\u200b', 'aria-label': '\u0007', href: 'c\u202e' }),
    ).toEqual({
      children: 'a\\u{202e}',
      title: 'b\\u{200b}',
      'aria-label': '\\u{7}',
      href: 'c‮',
    });
    const element = createElement('b');
    expect(visibleProps('p', { children: ['x\u2066', 7, null, element] })).toEqual({
      children: ['x\\u{2066}', 7, null, element],
    });
  });

  it('leave alone what a form edits', () => {
    const props = { value: 'a\u202e', defaultValue: 'b\u200b' };
    expect(visibleProps('input', props)).toEqual(props);
  });

  it('keep text from the right for itself, where an element can', () => {
    const hebrew = '\u05d0\u05d1';
    expect(visibleProps('p', { children: ['by ', hebrew, ' for $5'] })).toMatchObject({
      children: ['by ', { type: 'bdi', props: { children: hebrew } }, ' for $5'],
    });
    expect(visibleProps('option', { children: hebrew })).toEqual({ children: hebrew });
    expect(visibleProps(() => null, { children: hebrew })).toEqual({ children: hebrew });
  });
});

describe('sequences of a terminal', () => {
  it.each([
    ['a character set', 'a\u001b(Bb'],
    ['colours', 'a\u001b[38;5;1mb\u009b0m'],
    ['a title with a bell', 'a\u001b]0;evil\u0007b'],
    ['a title with an end', 'a\u001b]0;evil\u001b\\b\u009d0;evil\u009c'],
    ['a device string', 'a\u001bPq#0;2\u001b\\b\u0090q\u0007#0\u009c'],
    ['a command of a program', 'a\u001b_Gpicture\u001b\\b\u009fGpicture\u009c'],
    ['a private message', 'a\u001b^x\u001b\\b\u001bXx\u001b\\'],
    ['a string within a string', 'a\u001bPtmux;\u001b\u001b]52;c;evil\u0007\u001b\\b'],
    ['a cancelled one', 'a\u001bPx\u0018b'],
    ['bells and backspaces', '\u0007a\u0008\u007fb\u0000'],
  ])('show nothing, wherever they are cut: %s', (_name, text) => {
    expect(terminalText(text)).toBe('ab');
    for (let at = 0; at <= text.length; at += 1) {
      const output = new TerminalText();
      expect([at, output.next(text.slice(0, at)) + output.next(text.slice(at))]).toEqual([at, 'ab']);
    }
    const output = new TerminalText();
    expect(Array.from(text, (character) => output.next(character)).join('')).toBe('ab');
  });

  it.each(['\u001bP', '\u001b_', '\u001b]0;', '\u009b', '\u009d', '\u001b['])(
    'without an end hide no more than so much: %j',
    (start) => {
      const shownOf = (pieces: readonly string[]) => {
        const output = new TerminalText();
        return pieces.map((piece) => output.next(piece)).join('').length;
      };
      const hidden = '1'.repeat(20_000);
      expect(shownOf([start + hidden])).toBeGreaterThan(15_000);
      expect(shownOf([start, ...Array.from(hidden)])).toBeGreaterThan(15_000);
    },
  );

  it('can be anything', () => {
    const unit = fc.constantFrom(
      'a',
      ';',
      '1',
      '\u001b',
      '[',
      ']',
      'P',
      '\\',
      '\u0007',
      '\u009b',
      '\u009d',
      '\u009c',
      '\u0018',
    );
    fc.assert(
      fc.property(fc.string({ unit }), (text) => {
        // oxlint-disable-next-line no-control-regex
        expect(terminalText(text)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
      }),
    );
  });
});

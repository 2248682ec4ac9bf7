import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestConsole } from '../harness/console.js';

const IS_DARK = `matchMedia('(prefers-color-scheme: dark)').matches`;

let test: TestConsole;
beforeAll(async () => {
  test = await TestConsole.start();
});
afterAll(() => test.stop());

it('a window that another test has closed has nothing of it', async () => {
  const one = await test.open(await test.control.renter(0), { width: 500, theme: 'dark' });
  expect(await one.page.evaluate(IS_DARK)).toBe(true);
  await one.goTo('/keys');
  await one.moveTo('/instances');
  one.expectComplaints(/ERR_/);
  await one.page.route('**/*', (route) => route.abort());
  await one.context.setOffline(true);
  await one.context.newPage();
  await one.page.evaluate(`
    localStorage.left = sessionStorage.left = 'left';
    addEventListener('beforeunload', (event) => event.preventDefault());
  `);
  one.page.on('request', () => {
    throw new Error('it hears what the next test does');
  });
  await one.close();

  const renter = await test.control.renter(0);
  const other = await test.open(renter);
  expect(other.page).toBe(one.page);
  expect(other.context.pages()).toEqual([other.page]);
  expect(await other.page.evaluate('[localStorage.left, sessionStorage.left, history.length]')).toEqual([
    undefined,
    undefined,
    1,
  ]);
  expect(await other.page.evaluate(`[innerWidth, ${IS_DARK}]`)).toEqual([1440, false]);
  await other.goTo('/profile');
  await other.page.getByText(renter.email).first().waitFor();
  await other.close();
});

it('a window whose pages run a script of its test is not given to another', async () => {
  const renter = await test.control.renter(0);
  const one = await test.open(renter);
  await one.runBeforePages('window.left = true');
  await one.close();
  const other = await test.open(renter);
  expect(other.page).not.toBe(one.page);
  await other.goTo('/keys');
  expect(await other.page.evaluate('window.left')).toBeUndefined();
  await other.close();
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import type { components } from '../../../client/api/index.js';
import { eventually } from '../../../scripts/eventually.js';
import type { Renter } from '../../harness/control-plane.js';
import { TestConsole } from '../../harness/console.js';

type Template = components['schemas']['Template'];
interface Anchor {
  href: string;
  rel: string;
}

let test: TestConsole;
let renter: Renter;
beforeAll(async () => {
  test = await TestConsole.start();
  renter = await test.control.renter();
});
afterAll(() => test.stop());

const ownTemplates = async () => (await renter.api.get<{ items: Template[] }>('/v1/templates?tab=organization')).items;

declare function getComputedStyle(element: unknown): { getPropertyValue: (name: string) => string };
/** How a field masks what is typed; it runs in the browser. */
const maskOf = (element: unknown) => getComputedStyle(element).getPropertyValue('-webkit-text-security');

const HOSTILE = [
  '# Main <script>document.title = "broken"</script>',
  '<img src="https://evil.example/x.png" onerror="document.title = \'broken\'"> <style>* { display: none }</style>',
  '[run](javascript:alert(1)) [data](data:text/html,x) [relative](/sign-out) [good](https://good.example/a)',
  '![seen](https://evil.example/pixel.png)',
  '| a | b |\n|---|---|\n| ' + 'W'.repeat(400) + ' | &copy; |',
  '>'.repeat(2_000) + ' deep',
  '- '.repeat(200) + 'deep',
  '```html onload=x\n' + 'x'.repeat(600) + '\n```',
].join('\n\n');

it('makes a template by the keyboard: ports with guards, a secret that is masked, a password that nobody reads', async () => {
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/templates?tab=organization');
  await page.getByRole('link', { name: 'Make the first one' }).press('Enter');
  await page.getByRole('button', { name: 'Create the template' }).press('Enter');
  await page.waitForSelector('text=Give the template a name.');
  await page.getByLabel('Name', { exact: true }).fill('Mine');
  await page.getByLabel('Image', { exact: true }).fill('registry.example.com/mine:1');
  await page.getByRole('button', { name: 'Add a port' }).press('Enter');
  await page.getByLabel('Port', { exact: true }).fill('8080');
  await page.getByLabel('Access').selectOption('bearer');
  await page.getByRole('button', { name: 'Add a variable' }).press('Enter');
  await page.getByLabel('Variable', { exact: true }).fill('TOKEN');
  await page.getByLabel('secret', { exact: true }).press('Space');
  const value = page.getByLabel('Value', { exact: true });
  await value.fill('hush\nhush');
  expect(await value.evaluate(maskOf)).toBe('disc');
  await page.getByLabel('Password of the registry').selectOption('given');
  await page.getByLabel('User name').fill('me');
  await page.getByLabel('Password or token').fill('registry password');
  await window.shoot('template-editor');
  await window.checkAccess();
  await page.getByLabel('Password or token').press('Enter');
  await page.waitForSelector('h1:text-is("Mine")');
  await page.waitForSelector('text=secret: never shown');
  const [made] = await ownTemplates();
  expect(made).toMatchObject({
    name: 'Mine',
    image: 'registry.example.com/mine:1',
    registry_private: true,
    mode: ['ssh'],
    ports: [
      {
        port: 8080,
        protocol: 'http',
        guard: 'bearer',
        open_button: false,
        label: '',
      },
    ],
    env: [
      {
        key: 'TOKEN',
        value: null,
        secret: true,
      },
    ],
  });
  expect(await page.content()).not.toContain('hush');
  await window.close();
});

it('changes only what was changed, keeps what nobody can read, and asks before a change is lost', async () => {
  const [{ id } = { id: '' }] = await ownTemplates();
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo(`/templates/${id}/edit`);
  await page.getByLabel('Purpose').fill('For nobody else');
  await page.getByRole('link', { name: 'Cancel' }).press('Enter');
  await page.getByRole('alertdialog', { name: 'Leave without saving the template' }).waitFor();
  await window.checkAccess('[role=alertdialog]');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Keep it as it is' }).press('Enter');
  await page.getByRole('button', { name: 'Save the template' }).press('Enter');
  await page.waitForSelector('h1:text-is("Mine")');
  await page.waitForSelector('text=For nobody else');
  const [changed] = await ownTemplates();
  expect(changed).toMatchObject({ description: 'For nobody else', registry_private: true });
  window.expectComplaints(/422/);
  await page.getByRole('link', { name: 'Edit' }).click();
  await page.getByLabel('Who sees it').selectOption('public');
  await page.getByRole('button', { name: 'Save the template' }).click();
  // Secrets cannot be public: so the value was kept.
  await page.waitForSelector('[role=alert] >> text=a template with secret values cannot be public');
  expect(await page.getByLabel('Purpose').inputValue()).toBe('For nobody else');
  await window.close();
});

it('shows what strangers have written without running it, loading it, or losing its own shape', async () => {
  const name = '<b onmouseover=alert(1)>' + 'W'.repeat(40);
  const id = await test.control.template({ name, readme: HOSTILE, description: `\u202e${'W'.repeat(400)}` });
  const window = await test.open(renter, { width: 360, height: 740 });
  const { page } = window;
  await window.goTo('/templates?tab=system');
  await page.getByRole('link', { name: 'onmouseover' }).press('Enter');
  await page.waitForURL(`**/templates/${id}`);
  await page.waitForSelector('h2:text-is("Readme")');
  await page.waitForSelector('text=deep');
  expect(await page.title()).toBe(`${name} - gpurent`);
  const links = await page
    .locator('section:has(h2:text-is("Readme")) a')
    .evaluateAll((elements) => (elements as unknown as Anchor[]).map(({ href, rel }) => [href, rel]));
  const rel = 'noopener noreferrer nofollow';
  expect(links).toEqual([
    // The text of the picture in HTML has an address in it.
    ['https://evil.example/x.png%22', rel],
    ['https://good.example/a', rel],
    ['https://evil.example/pixel.png', rel],
  ]);
  expect(await page.locator('main :is(img, script, style, [onerror], [onload], [style], [id=main])').count()).toBe(0);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
  await window.shoot('template-hostile');
  await window.checkAccess();
  await window.close();
});

it('finds, duplicates and deactivates', async () => {
  await test.control.template({
    name: 'Base',
    recommended: true,
    readme: 'Say **hello**.',
    command: ['sh', '-c', 'a\nb'],
  });
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/templates');
  await page.getByLabel('Find').fill('b');
  await page.waitForURL('**words=b');
  await page.getByLabel('Find').fill('bas');
  await page.waitForURL('**words=bas');
  await page.goBack();
  await page.waitForURL('**/templates');
  await page.goForward();
  await page.waitForSelector('main li >> text=recommended');
  await window.shoot('templates');
  await window.checkAccess();
  await page.getByRole('link', { name: 'Base' }).click();
  await page.waitForSelector('strong:text-is("hello")');
  await window.shoot('template');
  await page.getByRole('button', { name: 'Duplicate' }).click();
  await page.waitForSelector('h1:text-is("Edit Base")');
  await page.getByLabel('Name', { exact: true }).fill('Copy');
  await page.getByRole('button', { name: 'Save the template' }).click();
  await page.waitForSelector('h1:text-is("Copy")');
  const copy = (await ownTemplates()).find((template) => template.name === 'Copy');
  expect(copy?.command).toEqual(['sh', '-c', 'a\nb']);
  await page.getByRole('button', { name: 'Deactivate' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Deactivate' }).click();
  await page.waitForURL('**/templates?tab=organization');
  window.expectComplaints(/404/);
  await window.goTo(`/templates/${copy?.id}`);
  await page.waitForSelector('[role=alert] >> text=TEMPLATE_NOT_FOUND');
  await eventually('the copy to go', async () => (await ownTemplates()).every((template) => template.name !== 'Copy'));
  await window.close();
});

it('lets nobody edit a template who only has the name of its publisher', async () => {
  const { id } = await renter.api.post<Template>('/v1/templates', {
    name: 'Shared',
    image: 'registry.example/shared:1',
    visibility: 'public',
  });
  const { name } = await renter.api.get<{ name: string }>('/v1/orgs/current');
  const namesake = await test.control.renter();
  await namesake.api.request('PATCH', '/v1/orgs/current', { name });
  const edit = async (who: Renter, maker: string) => {
    const window = await test.open(who);
    await window.goTo(`/templates/${id}`);
    await window.page.getByRole('button', { name: 'Duplicate' }).waitFor();
    await window.page.waitForSelector(`text=public, by ${maker}`);
    const count = await window.page.getByRole('link', { name: 'Edit' }).count();
    await window.close();
    return count;
  };
  expect([await edit(renter, 'your organization'), await edit(namesake, `“${name}”`)]).toEqual([1, 0]);
});

it('leads to the first field that is wrong, also where only the control plane knows', async () => {
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/templates/new');
  const [name, image] = [page.getByLabel('Name', { exact: true }), page.getByLabel('Image', { exact: true })];
  const create = page.getByRole('button', { name: 'Create the template' });
  const hasFocus = async (field: typeof name) =>
    (await page.locator(':focus').getAttribute('id')) === (await field.getAttribute('id'));
  await name.fill('Named');
  await create.press('Enter');
  await eventually('the focus of the image', () => hasFocus(image));
  await image.fill('registry.example/named:1');
  await name.fill('Named\u202e');
  await create.press('Enter');
  await eventually('the focus of the name', () => hasFocus(name));
  expect(await name.getAttribute('aria-invalid')).toBe('true');
  window.expectComplaints(/422/);
  page.once('dialog', (question) => void question.accept());
  await window.close();
});

it('keeps every letter of the words and its place, and shows those of the address', async () => {
  const window = await test.open(renter);
  const { page } = window;
  await window.goTo('/templates');
  const find = page.getByLabel('Find');
  await find.fill('se');
  await page.waitForURL('**words=se');
  await find.press('Home');
  await page.keyboard.type('ba');
  await page.waitForURL('**words=base');
  expect(await find.inputValue()).toBe('base');
  await page.goBack();
  await page.waitForURL('**/templates');
  await eventually('the words of the address', async () => (await find.inputValue()) === '');
  await find.fill('desk');
  await find.press('Enter');
  await page.waitForURL('**words=desk');
  await window.close();
});

it('has among the templates of the organization those that it has published', async () => {
  const publisher = await test.control.renter(0);
  const published = { name: 'Published', image: 'registry.example/published:1', visibility: 'public' };
  await publisher.api.post<Template>('/v1/templates', published);
  const window = await test.open(publisher);
  await window.goTo('/templates?tab=organization');
  await window.page.locator('main').getByRole('link', { name: 'Published' }).waitFor();
  await window.close();
});

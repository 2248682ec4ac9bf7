import { useState, type ReactNode } from 'react';
import { Button, LinkButton } from '../../parts/controls/button.js';
import { CopyLine } from '../../parts/controls/copy.js';
import { Confirm, Dialog, DialogActions } from '../../parts/controls/dialog.js';
import { CheckBox, Field, Input, Select, TextArea } from '../../parts/forms/field.js';
import { Menu, MenuChoice, MenuItem, MenuLine } from '../../parts/controls/menu.js';
import { Hourly, Money } from '../../parts/values/money.js';
import { Page, Section } from '../../parts/layout/page.js';
import { Empty, ErrorBox, Notice, Skeleton } from '../../parts/controls/states.js';
import { Status } from '../../parts/values/status.js';
import { Table } from '../../parts/layout/table.js';
import { Ago, At, Lasts } from '../../parts/values/time.js';
import { say } from '../../parts/controls/toast.js';
import styles from './page.module.css';

const LONG = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft';
const STATUSES = [
  'creating',
  'starting',
  'running',
  'stopping',
  'stopped',
  'destroying',
  'destroyed',
  'error',
] as const;
const MONEY = { balanceMicro: 1_000_000, chargedMicro: 500_000 };
const EARLIER = new Date(Date.now() - 254_000).toISOString();
const LATER = new Date(Date.now() + 22_800_000).toISOString();

/** Each part in each of its states. It is there in development only. */
export default function PartsPage() {
  return (
    <Page title="Parts" lead="Each part in each of its states." actions={<Button kind="main">Main act</Button>}>
      <Section title="Buttons">
        <Row>
          <Button kind="main">Main</Button>
          <Button>Quiet</Button>
          <Button kind="plain">Plain</Button>
          <Button kind="danger">Danger</Button>
          <Button disabled>Disabled</Button>
          <Button kind="main" isBusy>
            Busy
          </Button>
          <LinkButton to="/market">Link</LinkButton>
          <Button>{LONG}</Button>
        </Row>
      </Section>
      <Section title="Statuses, money, times">
        <Row>
          {STATUSES.map((status) => (
            <Status key={status} status={status} />
          ))}
        </Row>
        <Row>
          <Money micro={1_203_400} /> <Money micro={-500_001} /> <Hourly micro={1_200_000} />
          <Ago at={EARLIER} /> <At at={LATER} /> <Lasts {...MONEY} until={LATER} /> <Lasts {...MONEY} until={EARLIER} />{' '}
          <Lasts {...MONEY} chargedMicro={0} until={null} />
        </Row>
      </Section>
      <Inputs />
      <Section title="Table">
        <Table
          label="Names"
          columns={[
            { title: 'Name', cell: (row: string) => row },
            { title: 'Price', cell: () => <Hourly micro={1_200_000} />, isNumber: true },
          ]}
          rows={['short', LONG]}
          keyOf={(row) => row}
          isWeak={(row) => row === LONG}
        />
      </Section>
      <Section title="States">
        <Empty title="Nothing yet" action={<Button>Fill it</Button>}>
          What this is for.
        </Empty>
        <Skeleton rows={2} />
        <ErrorBox error={new Error(`the balance does not cover one hour: ${LONG}`)} retry={() => undefined} />
        <Notice>Something to know.</Notice>
        <Notice kind="warning">Something that is about to happen.</Notice>
        <CopyLine label="SSH command" text={`ssh -p 20022 root@203.0.113.7 # ${LONG}`} />
      </Section>
      <Floating />
    </Page>
  );
}

function Inputs() {
  const [choice, setChoice] = useState<'one' | 'two'>('one');
  const choices = [
    { value: 'one', label: 'One' },
    { value: 'two', label: LONG },
  ] as const;
  return (
    <Section title="Inputs">
      <Field label="Label" hint="Up to 64 characters.">
        {(tied) => <Input {...tied} />}
      </Field>
      <Field label="Disk" error="Give a number from 10 to 20000.">
        {(tied) => <Input {...tied} defaultValue="5" />}
      </Field>
      <Field label="Key">{(tied) => <TextArea {...tied} rows={3} />}</Field>
      <Field label="Choice">
        {(tied) => <Select {...tied} choices={choices} value={choice} onChoose={setChoice} />}
      </Field>
      <CheckBox label="It is so" />
    </Section>
  );
}

function Floating() {
  const [open, setOpen] = useState<'dialog' | 'confirm'>();
  const close = () => setOpen(undefined);
  return (
    <Section title="What floats">
      <Row>
        <Button onClick={() => setOpen('dialog')}>Dialog</Button>
        <Button onClick={() => setOpen('confirm')}>Confirm</Button>
        <Button onClick={() => say('The key is copied')}>Toast</Button>
        <Menu label="Menu">
          <MenuChoice
            label="Choice"
            value="a"
            choices={[
              { value: 'a', label: 'A' },
              { value: 'b', label: LONG },
            ]}
            onChoose={() => undefined}
          />
          <MenuLine />
          <MenuItem onClick={() => undefined}>Act</MenuItem>
        </Menu>
      </Row>
      <Dialog title="A new key" isOpen={open === 'dialog'} onClose={close}>
        <p>{LONG}</p>
        <DialogActions>
          <Button onClick={close}>Close</Button>
        </DialogActions>
      </Dialog>
      <Confirm
        title="Destroy vLLM-1 and its 80 GB disk"
        verb="Destroy"
        isOpen={open === 'confirm'}
        onClose={close}
        onConfirm={close}
      >
        Nobody can bring it back.
      </Confirm>
    </Section>
  );
}

function Row({ children }: { children: ReactNode }) {
  return <div className={styles.row}>{children}</div>;
}

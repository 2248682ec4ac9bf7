import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { useAct } from '../../data/forms/act.js';
import { api } from '../../data/api/api.js';
import { exactMoney, parseMoney } from '../../data/values/money.js';
import { useOneRequest } from '../../data/api/one-request.js';
import { organization } from '../../data/api/queries.js';
import { Button } from '../../parts/controls/button.js';
import { Dialog, DialogActions } from '../../parts/controls/dialog.js';
import { Field, Input } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import { Unanswered } from '../../parts/controls/states.js';
import { NoPayments } from './no-payments.js';
import styles from './page.module.css';

const route = getRouteApi('/billing');
const [LEAST, MOST, CENT] = [1_000_000, 100_000_000_000, 10_000];
const FAULT = `Give dollars and whole cents, from ${exactMoney(LEAST)} to ${exactMoney(MOST)}.`;

/** Asks how much to pay, then leads to the page of the payment provider. */
export function TopUp() {
  const { pay = false } = route.useSearch();
  const navigate = route.useNavigate();
  // Without the field the form is tried, and the refusal says so.
  const takesPayments = useQuery(organization).data?.takes_payments !== false;
  const close = () => void navigate({ search: ({ pay: _, ...rest }) => rest, replace: true });
  return (
    <Dialog title="Add money" isOpen={pay} onClose={close}>
      {takesPayments ? <TopUpForm close={close} /> : <NoPayments close={close} />}
    </Dialog>
  );
}

function TopUpForm({ close }: { close: () => void }) {
  const [text, setText] = useState('25');
  const [isTried, setTried] = useState(false);
  const micro = parseMoney(text) ?? 0;
  const isValid = micro >= LEAST && micro <= MOST && micro % CENT === 0;
  const body = { amount_micro: micro };
  const { send, isUnanswered } = useOneRequest<typeof body>('top-up');
  const paying = useAct(
    () => send(body, (headers) => api.post('/v1/billing/checkout-session', { body, headers })),
    [],
    ({ url }) => location.assign(url),
  );
  const submit = () => {
    setTried(true);
    if (isValid) paying.mutate();
  };
  return (
    <Form className={styles.form} onSubmit={submit} error={paying.error} noValidate>
      <Field
        name="amount_micro"
        label="Amount in dollars"
        hint="You pay on the page of the payment provider; the money is here once it says so."
        error={isTried && !isValid ? FAULT : undefined}
      >
        {(tied) => (
          <Input {...tied} inputMode="decimal" value={text} onChange={({ target }) => setText(target.value)} />
        )}
      </Field>
      <FormError />
      {!paying.isPending && isUnanswered(body) && <Unanswered />}
      <DialogActions>
        <Button onClick={close}>Cancel</Button>
        <Button kind="main" type="submit" isBusy={paying.isPending || paying.isSuccess}>
          {isValid ? `Pay ${exactMoney(micro)}` : 'Pay'}
        </Button>
      </DialogActions>
    </Form>
  );
}

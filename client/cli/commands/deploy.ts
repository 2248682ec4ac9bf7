import { Option } from 'commander';
import type { Gpurent } from '../../api/index.js';
import { choosePlan } from '../deploy/choose.js';
import { asksForTheSame, PendingDeploys, type Pending } from '../deploy/pending.js';
import { bodyOf, type DeployBody } from '../deploy/plan.js';
import { atMostFor, priceLines, refuseWhatCannotBe } from '../deploy/price.js';
import { send } from '../deploy/send.js';
import type { Wishes } from '../deploy/wishes.js';
import { usageError } from '../errors/cli-error.js';
import { nameOf } from '../instances/find.js';
import { followUntil, newestEvent } from '../instances/follow.js';
import type { Define } from '../invocation/define.js';
import type { Invocation } from '../invocation/invocation.js';
import { spell } from '../output/times.js';
import { confirm } from '../prompts/confirm.js';
import { duration, minutes, money, several, whole, withYes } from './options.js';

export const define: Define = (command, invocation) => {
  withYes(command)
    .option('--offer <id>', 'this offer')
    .option('--gpu <model>', 'the cheapest offer with this model; a part of its name is enough')
    .option('--gpus <count>', 'with so many GPUs', whole(0, 1_000))
    .option('--max-price <dollars>', 'for at most so much an hour', money)
    .option('--region <region>', 'in this region')
    .option('--template <template>', 'what runs: an id, its beginning, or a name')
    .option('--disk <gb>', 'how large its disk is; otherwise 20', whole(10, 20_000))
    .option('--ssh-key <key>', 'who logs in: an id, its beginning, or a name; otherwise your only key')
    .option('--no-ssh-key', 'nobody logs in by SSH')
    .option('--label <label>', 'what you call it')
    .option('--env <variable>', 'KEY=VALUE for the workload; can be given several times', several)
    .option('--secret-env <key>', 'the same with the value that KEY has here, kept secret', several)
    .option('--for <duration>', 'stop it after so long', duration)
    .option('--max-cost <dollars>', 'stop it when it has cost so much', money)
    .option('--idle-stop <duration>', 'stop it when it was idle for so long', minutes)
    .addOption(new Option('--on-limit <act>', 'what these limits do').choices(['stop', 'destroy']))
    .option('--wait', 'until it is running; so it is on a terminal')
    .option('--no-wait', 'only until it is accepted')
    .option('--resume', 'go on with a deploy whose answer was lost')
    .action((wishes: Wishes) => deploy(invocation, wishes));
};

async function deploy(invocation: Invocation, wishes: Wishes): Promise<void> {
  const { terminal } = invocation;
  const gpurent = invocation.gpurent();
  const pendings = new PendingDeploys(terminal);
  const pending = wishes.resume
    ? newestLeft(invocation, pendings)
    : await planned(invocation, gpurent, pendings, wishes);
  const begun = terminal.now();
  const after = await newestEvent(gpurent);
  const accepted = await send(gpurent, terminal, pendings, pending);
  const waits = wishes.wait ?? (terminal.isInteractive && !invocation.wantsJson);
  const instance = waits ? await followUntil(gpurent, terminal, accepted, 'running', after) : accepted;
  const name = nameOf(instance);
  invocation.object(instance, () =>
    instance.status === 'running'
      ? [`${name} is up in ${spell(terminal.now() - begun)}`, `gpurent ssh ${name}`]
      : [`${name} is ${instance.status}. See how it goes on: gpurent show ${instance.id}`],
  );
}

/** Chooses, says the price, and lets the person confirm it. */
async function planned(
  invocation: Invocation,
  gpurent: Gpurent,
  pendings: PendingDeploys,
  wishes: Wishes,
): Promise<Pending> {
  const { terminal } = invocation;
  const plan = await choosePlan(invocation, gpurent, wishes);
  const body = bodyOf(plan, wishes, terminal);
  const estimate = await gpurent.post('/v1/instances/estimate', { body });
  for (const line of priceLines(plan, body, estimate, terminal.now())) invocation.note(line);
  refuseWhatCannotBe(estimate);
  await confirm(invocation, wishes.yes, 'Deploy it');
  return pendingOf(invocation, pendings, atMostFor(body, estimate));
}

/** Returns the deploy to send: one whose answer was lost, if it has asked for the same. */
function pendingOf(invocation: Invocation, pendings: PendingDeploys, body: DeployBody): Pending {
  const { url, organization_id } = invocation.chosen().context;
  const same = pendings.left(url, organization_id).find((each) => asksForTheSame(each.body, body));
  if (same) {
    invocation.note(
      `The same deploy was sent ${spell(invocation.terminal.now() - same.sent_at)} ago, and nobody knows what came of it: going on with it.`,
    );
    return { ...same, pid: process.pid };
  }
  return { key: crypto.randomUUID(), url, organization_id, body, sent_at: invocation.terminal.now(), pid: process.pid };
}

function newestLeft(invocation: Invocation, pendings: PendingDeploys): Pending {
  const { url, organization_id } = invocation.chosen().context;
  const [newest] = pendings.left(url, organization_id);
  if (!newest) throw usageError('there is no deploy whose answer was lost', 'See what you have: gpurent ls');
  return { ...newest, pid: process.pid };
}

import { Argument, Option } from 'commander';
import type { components } from '../../api/index.js';
import { only } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import type { Column } from '../output/table.js';
import { minuteOf } from '../output/times.js';
import { confirm } from '../prompts/confirm.js';
import { withYes } from './options.js';

type Member = components['schemas']['Member'];
type Invite = components['schemas']['Invite'];
type Role = 'admin' | 'member' | 'billing' | 'viewer';

const ROLES: readonly Role[] = ['admin', 'member', 'billing', 'viewer'];

const MEMBERS: readonly Column<Member>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8), yields: 2 },
  { title: 'E-MAIL', of: ({ email }) => email },
  { title: 'NAME', of: ({ name }) => name, yields: 1 },
  { title: 'ROLE', of: ({ role }) => role },
  { title: 'JOINED', of: ({ joined_at }) => minuteOf(joined_at), yields: 3 },
];
const INVITES: readonly Column<Invite>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'E-MAIL', of: ({ email }) => email },
  { title: 'ROLE', of: ({ role }) => role },
  { title: 'UNTIL', of: ({ expires_at }) => minuteOf(expires_at), yields: 1 },
];

export const define: Define = (command, invocation) => {
  const list = async () => {
    const { items } = await invocation.gpurent().get('/v1/orgs/current/members');
    invocation.list(items, MEMBERS, 'There are no members.');
  };
  const findMember = async (wanted: string) => {
    const { items } = await invocation.gpurent().get('/v1/orgs/current/members');
    return only(items, wanted, 'member', ({ id, email }) => ({ id, name: email }), 'gpurent team');
  };
  command.action(list);
  command.command('list').description('the members of the organization').action(list);
  command
    .command('role <member>')
    .description('give a member another role: by e-mail address or id')
    .addArgument(new Argument('<role>', 'what they may do').choices(ROLES))
    .action(async (wanted: string, role: Role) => {
      const { id } = await findMember(wanted);
      const init = { params: { path: { id } }, body: { role } };
      const member = await invocation.gpurent().patch('/v1/orgs/current/members/{id}', init);
      invocation.object(member, () => [`${member.email} is ${member.role} now.`]);
    });
  withYes(command.command('remove <member>').description('remove a member: by e-mail address or id')).action(
    async (wanted: string, { yes }: { yes?: true }) => {
      const member = await findMember(wanted);
      await confirm(invocation, yes, `Remove ${member.email}, and revoke their personal API keys`);
      await invocation.gpurent().delete('/v1/orgs/current/members/{id}', { params: { path: { id: member.id } } });
      invocation.object(member, () => [`${member.email} is removed.`]);
    },
  );
  defineInvites(command, invocation);
};

const defineInvites: Define = (command, invocation) => {
  command
    .command('invite <email>')
    .description('invite somebody, and print the token of the invitation, once')
    .addOption(new Option('--role <role>', 'what they may do').choices(ROLES).default('member'))
    .action(async (email: string, { role }: { role: Role }) => {
      const made = await invocation.gpurent().post('/v1/orgs/current/invites', { body: { email, role } });
      if (invocation.wantsJson) return invocation.json(made);
      invocation.note(
        made.mailed ? 'The control plane mails this invitation:' : 'Give them this token, with which they join:',
      );
      invocation.line(made.token);
    });
  command
    .command('invites')
    .description('the open invitations')
    .action(async () => {
      const { items } = await invocation.gpurent().get('/v1/orgs/current/invites');
      invocation.list(items, INVITES, 'There are no open invitations.');
    });
  command
    .command('withdraw <invitation>')
    .description('withdraw an invitation: by e-mail address or id')
    .action(async (wanted: string) => {
      const gpurent = invocation.gpurent();
      const { items } = await gpurent.get('/v1/orgs/current/invites');
      const invite = only(
        items,
        wanted,
        'invitation',
        ({ id, email }) => ({ id, name: email }),
        'gpurent team invites',
      );
      await gpurent.delete('/v1/orgs/current/invites/{id}', { params: { path: { id: invite.id } } });
      invocation.object(invite, () => [`The invitation of ${invite.email} is withdrawn.`]);
    });
};

import { Type } from 'typebox';
import { ON_LIMIT } from '../../../domain/money/instance-limits.js';
import { GPU_RELEASES, INSTANCE_ACTIONS, INSTANCE_STATUSES } from '../../../domain/instances/instance-state.js';
import type { InstanceDetails } from '../../../services/actions/instance-details.js';
import {
  choice,
  flag,
  integer,
  iso,
  isoOrNull,
  list,
  meaning,
  micro,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../schema/schemas.js';
import { kindOf } from '../api-keys.js';
import { hoursOf } from '../offers.js';
import { Template, templateView } from '../templates.js';

function holdPrice() {
  return nullable(micro('Reserved for a fee for held GPUs; always null, because no such fee is charged'));
}

const DeployingKey = Type.Object(
  {
    id: uuid('The id of the key'),
    name: text('The name of the key'),
    kind: kindOf(),
    prefix: text('The first 12 characters of its secret'),
    revoked: flag('Whether the key has been revoked since, or has expired'),
  },
  { description: 'The API key that deployed the instance; null: a person did' },
);

export const Instance = Type.Object(
  {
    id: uuid('The id of the instance'),
    label: nullable(text('The label that its renter gave it')),
    status: choice(
      INSTANCE_STATUSES,
      'The status; `creating`, `starting`, `stopping` and `destroying` end without a request',
    ),
    disk_gb: integer('The size of its disk in GB; the disk is charged per hour while the instance is `stopped`'),
    price_per_hour_micro: micro('The price of one hour of GPU time for all its GPUs, as of the deploy'),
    storage_price_per_gb_hour_micro: micro('The price of one GB of disk for one hour, as of the deploy'),
    ssh_host: nullable(text('The public IP address of its machine; null until the workload is up')),
    ssh_port: nullable(integer('The port of its SSH server, never 22; null until the workload is up')),
    ssh_user: text('The user to log in as'),
    ssh_ready_at: nullable(timestamp('Since when its SSH server answers; null until it does')),
    ssh_host_key: nullable(
      text(
        'The public host key of its SSH server as in a known_hosts file (`ssh-ed25519 AAAA...`), as its host has last seen it; null: not yet, or its agent cannot tell',
      ),
    ),
    ssh_key_fingerprint: nullable(
      text(
        'The fingerprint of the SSH key that can log in, as `SHA256:...`, like `ssh-keygen -l` prints it; null: none, or the instance was deployed by an earlier release. A replacement changes it once its host has confirmed it',
      ),
    ),
    jupyter_url: nullable(
      text('The URL of its JupyterLab, with the access token as the query parameter `token`; null until it answers'),
    ),
    open_url: nullable(
      text(
        'The URL of the port that the template marks with `open_button`; if the access proxy guards the port, with the access token as the query parameter `token`; null until it answers',
      ),
    ),
    access_token: nullable(
      text(
        'The access token for its JupyterLab and its guarded ports; null if the template uses none, once the instance is `destroyed`, and for viewers and read-only API keys, which also get the URLs without it',
      ),
    ),
    access_replacement: nullable(
      choice(
        ['pending', 'applied', 'token_only', 'refused'],
        'The state of the last replacement of access token and SSH key; `token_only`: the container keeps its old key; null: none was requested',
      ),
    ),
    error_code: nullable(
      text(
        'Why the instance is in `error`, such as `provision_failed` or `workload_completed`, or why its last stop or start failed: `stop_timed_out`, `start_timed_out`, `gpus_unavailable`; otherwise null. Later releases can add codes',
      ),
    ),
    error_message: nullable(text('A description of the error; null if `error_code` is null')),
    allowed_actions: list(
      Type.Enum([...INSTANCE_ACTIONS], { type: 'string' }),
      'The actions that the API accepts in the present status',
    ),
    gpus_released: flag(
      'True once the GPUs of the stopped instance are released; its disk stays, and a start must claim the same GPUs',
    ),
    gpu_release: nullable(
      choice(
        GPU_RELEASES,
        '`pending`: requested, not yet confirmed by the machine; `released`; `unsupported`: the machine cannot release GPUs, they stay reserved; null: no release was requested',
      ),
    ),
    gpu_release_requested_at: nullable(timestamp('When the release was requested')),
    stop_releases_gpus: flag(
      'True while a payment dispute is open: a stop then releases the GPUs, if the machine supports it',
    ),
    releases_gpus_at: nullable(
      timestamp(
        'When the GPUs of the stopped instance will be released by the terms of its offer; null: no time is set',
      ),
    ),
    release_stopped_after_hours: nullable(
      integer('After how many hours in `stopped` its GPUs are released, by the terms of its deploy; null: never'),
    ),
    hold_price_per_hour_micro: holdPrice(),
    stop_hold_price_per_hour_micro: holdPrice(),
    suspended_hold_price_per_hour_micro: holdPrice(),
    stop_at: nullable(timestamp('When the instance will be stopped; null: no time is set')),
    max_charge_micro: nullable(
      micro('What the instance may cost in all: it is stopped when `spend_micro` has reached it; null: no limit'),
    ),
    idle_stop_minutes: nullable(integer('After how many idle minutes the instance is stopped; null: never')),
    on_limit: nullable(choice(ON_LIMIT, 'What these limits do: `stop`, or `destroy` with the disk; null: `stop`')),
    created_at: timestamp('When the instance was deployed'),
    started_at: nullable(timestamp('When its workload first started')),
    status_changed_at: timestamp('When its status last changed'),
    destroys_at: nullable(
      timestamp(
        'When the control plane destroys the instance, because it is in `error` and cannot be started again; null: it does not',
      ),
    ),
    destroyed_at: nullable(timestamp('When the instance was destroyed')),
    spend_micro: micro('The total charged for the instance so far: the sum of its charges in the transactions'),
    deployed_by: text(
      'The e-mail address of the user who deployed it, or the name and prefix of the team API key that did',
    ),
    deployed_via_api_key: nullable(DeployingKey),
    offer: Type.Object({ id: uuid('The id of the offer') }, { description: 'The offer that the instance rents' }),
    gpu_model: nullable(text('The model of its GPUs; null: its machine reports none')),
    num_gpus: integer('The number of GPUs that it rents'),
    machine: Type.Object(
      {
        name: text('The name that its host owner gave it'),
        region: text('The region that its host owner gave'),
      },
      { description: 'The machine that has the GPUs' },
    ),
    template: meaning(
      Template,
      'The template as of the deploy; `readme` and `onstart` are null. Once the instance is destroyed, `command` and `env` of a template of more than 8 KiB are empty',
    ),
  },
  { title: 'Instance' },
);

/** Returns an instance as the API shows it. */
export function instanceView(instance: InstanceDetails) {
  return {
    ...instance,
    gpus_released: instance.gpus_released === 1,
    gpu_release_requested_at: isoOrNull(instance.gpu_release_requested_at),
    hold_price_per_hour_micro: null,
    stop_hold_price_per_hour_micro: null,
    suspended_hold_price_per_hour_micro: null,
    created_at: iso(instance.created_at),
    started_at: isoOrNull(instance.started_at),
    ssh_ready_at: isoOrNull(instance.ssh_ready_at),
    stop_at: isoOrNull(instance.stop_at),
    releases_gpus_at: isoOrNull(instance.gpus_released ? null : instance.release_gpus_at),
    release_stopped_after_hours: hoursOf(instance.release_stopped_after_ms),
    status_changed_at: iso(instance.status_changed_at),
    destroys_at: isoOrNull(instance.destroys_at),
    destroyed_at: isoOrNull(instance.destroyed_at),
    offer: { id: instance.offer_id },
    template: templateView(instance.template),
    allowed_actions: [...instance.allowed_actions],
  };
}

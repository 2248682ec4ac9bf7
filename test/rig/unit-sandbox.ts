import type { SystemdMachine } from './systemd-machine.js';

/** What makes a unit a service of its own; the rest is its sandbox. */
const SERVICE = /^(Type|NotifyAccess|Restart\w*|State\w*|TimeoutStartSec|ExecStart|After|Wants|Documentation)=/;
const [SCRIPT, OUTPUT, NAME] = ['/root/sandboxed.sh', '/root/sandboxed', 'gpurent-sandboxed.service'];

/** Runs commands on a machine with the rights that an installed unit leaves to its program. Returns the lines that they print. */
export async function runInSandbox(
  machine: SystemdMachine,
  unit: string,
  commands: readonly string[],
): Promise<string[]> {
  const installed = (await machine.sh(`cat /etc/systemd/system/${unit}`)).split('\n');
  const runs = ['[Service]', 'Type=oneshot', `StandardOutput=file:${OUTPUT}`, `ExecStart=/bin/sh ${SCRIPT}`];
  const lines = installed
    .filter((line) => !SERVICE.test(line))
    .flatMap((line) => (line === '[Service]' ? runs : [line]));
  const said = await machine.sh(`
    cat >${SCRIPT} <<'END'
${commands.join('\n')}
END
    cat >/run/systemd/system/${NAME} <<'END'
${lines.join('\n')}
END
    systemctl daemon-reload; systemctl start ${NAME}
    cat ${OUTPUT}; rm ${OUTPUT} ${SCRIPT} /run/systemd/system/${NAME}; systemctl daemon-reload`);
  return said.split('\n');
}

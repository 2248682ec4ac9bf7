# Functions that both installers share.
# shellcheck shell=bash

release=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
prefix=/opt/gpurent
config_dir=/etc/gpurent
units=/etc/systemd/system

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

# The process that says that a long step goes on.
ticker=

# begin_step WHAT: says every four seconds what is being done, until the next step or end_step: silence looks like a hang.
begin_step() {
  local what=$1 began=$SECONDS
  end_step
  (
    while sleep 4 >/dev/null 2>&1; do say "$what, for $((SECONDS - began)) seconds so far"; done
  ) </dev/null >/dev/null &
  ticker=$!
}

end_step() {
  if [ -n "$ticker" ]; then
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
  fi
  ticker=
}
trap end_step EXIT

require_system() {
  [ "$(id -u)" = 0 ] || die 'run this as root'
  [ -d /run/systemd/system ] || die 'this machine does not use systemd: run "node dist/bundle/control-plane.js serve" or "node dist/bundle/agent.js run" by another service manager'
}

# Refuses a machine that cannot be a host: the control plane would refuse its enrollment, or its kernel is too old.
require_host() {
  local arch kernel
  arch=$(uname -m)
  [ "$arch" = x86_64 ] || die "this machine is $arch, but hosts are x86_64: nothing was changed"
  kernel=$(uname -r)
  case "$kernel" in
  [0-4].* | 5.[0-9].* | 5.[0-9] | 5.[0-9]-* | [!0-9]*) die "this machine has Linux $kernel, but hosts have 5.10 or later: nothing was changed" ;;
  esac
}

# require_node PROGRAM: sets `node` to a Node that runs this release now, and `service_node` to the path where services find it. The
# release brings its own; where that one does not run, a fitting one of this machine is taken.
require_node() {
  local reason
  node=$release/node/bin/node service_node=$prefix/$1/node/bin/node
  if reason=$(own_node_runs); then return; fi
  # The only library that it needs and a small Debian lacks.
  if [[ "$reason" = *libatomic* ]] && command -v apt-get >/dev/null; then
    say 'installing libatomic1'
    apt-get install -y -qq --no-install-recommends libatomic1 </dev/null >/dev/null 2>&1 || true
    if reason=$(own_node_runs); then return; fi
  fi
  node=$(command -v node) || die "nothing was changed: the Node of this release does not run here (${reason:-it is missing}), and this machine has no other"
  service_node=$node
  # Keeps the path as found, not the link's target: the target can change with the next upgrade of Node.
  case "$(readlink -f "$node")" in
  /home/* | /root/*) die "$node is in a home folder, which services cannot read: install Node for the whole machine" ;;
  esac
  "$node" "$release/dist/shared/require-node.js" ||
    die "nothing was changed: the Node of this release does not run here (${reason:-it is missing}), and this machine's Node does not fit"
}

# find_node: sets `node` to one that can run this release, if there is one.
find_node() {
  node=$release/node/bin/node
  own_node_runs >/dev/null || node=$(command -v node)
}

# Prints why the Node of this release cannot run it.
own_node_runs() { "$release/node/bin/node" "$release/dist/shared/require-node.js" 2>&1; }

# check_settings MAIN VARIABLE FILE [OPTION...]: asks this release whether it takes the settings of this machine, if there are any. An
# older release does not know newer settings, and must say so before the program that runs is stopped.
check_settings() {
  local main=$release/$1 variable=$2 file=$config_dir/$3
  shift 3
  if [ ! -e "$file" ]; then return; fi
  # Without the variables of this shell, which the service does not get.
  env -i PATH="$PATH" "$variable=$file" "$node" "$main" check-settings "$@" >/dev/null ||
    die "nothing was changed: correct $file, then run this again"
}

# check_signature PROGRAM: where the owner has put the public key of releases, refuses a release whose tarball beside it is not signed by
# that key, or that is not as in the tarball. The installed program checks the new one, because a forged one could say anything.
check_signature() {
  local key=$config_dir/release.pub tarball=$release.tar.gz checker=$prefix/$1/dist/bundle/$1.js node=$prefix/$1/node/bin/node changed
  # A release that is installed was checked before.
  if { [ ! -e "$key" ] && [ ! -L "$key" ]; } || [ "${release%/*}" = "$prefix" ]; then return; fi
  # One that was installed before 0.3.0 has no Node of its own.
  [ -x "$node" ] || node=$(command -v node) || node=$release/node/bin/node
  # A program before 0.3.0 has no such command, and gives its other help.
  [[ $("$node" "$checker" verify --help 2>/dev/null) = *--key* ]] || checker=$release/dist/bundle/$1.js
  "$node" "$checker" verify --key "$key" "$tarball" >&2 ||
    die "nothing was changed: $key asks for a signed release. Put the tarball, SHA256SUMS and SHA256SUMS.minisig beside $release"
  changed=$(LC_ALL=C tar -C "${release%/*}" -dzf "$tarball" 2>&1 | grep -vE ': (Uid|Gid|Mode|Mod time) differs$' || true)
  [ -z "$changed" ] || die "nothing was changed: $release is not what its tarball has: ${changed%%$'\n'*}. Unpack it again"
}

# install_release PROGRAM: copies this release to its place under $prefix. The running program uses the old release until its
# restart, and the other program of this machine keeps its own. Files that are already there and equal stay as they are.
install_release() {
  version=$("$node" -p "require('$release/dist/build.json').version")
  local target=$prefix/$version
  begin_step "copying the release to $target"
  if [ "$release" != "$target" ] && ! diff -rq --no-dereference "$release" "$target" >/dev/null 2>&1; then
    rm -rf "$target.new"
    mkdir -p "$prefix"
    cp -r "$release" "$target.new"
    chown -R root:root "$target.new"
    chmod -R u=rwX,go=rX "$target.new"
    if [ -e "$target" ]; then mv "$target" "$target.old"; fi
    mv "$target.new" "$target"
    rm -rf "$target.old"
  elif [ "$release" != "$target" ]; then
    # The files are equal; this repairs their owners and modes.
    chown -R root:root "$target"
    chmod -R u=rwX,go=rX "$target"
  fi
  ln -sfn "$version" "$prefix/$1.new"
  mv -T "$prefix/$1.new" "$prefix/$1"
  end_step
}

# install_program PROGRAM ENTRY USER VARIABLE CONFIG: installs a command that runs as the service's user, with the same settings.
install_program() {
  local program=$1 entry=$2 user=$3 variable=$4 config=$config_dir/$5
  local become='' main=$prefix/$entry/dist/bundle/$entry.js
  if [ "$user" != root ]; then become="if [ \"\$(id -u)\" = 0 ]; then exec runuser -u $user -- \"\$0\" \"\$@\"; fi"; fi
  cat >"/usr/local/bin/$program" <<EOF
#!/bin/sh
umask 077
# cron gives a short PATH.
PATH=\${PATH:+\$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
$become
export $variable="\${$variable:-$config}" NODE_ENV=production
exec $service_node $main "\$@"
EOF
  chmod 755 "/usr/local/bin/$program"
}

# install_config FILE MODE GROUP: installs a settings file unless it exists.
install_config() {
  mkdir -p "$config_dir"
  if [ ! -e "$config_dir/$1" ]; then cp "$release/packaging/$1" "$config_dir/$1"; fi
  chmod "$2" "$config_dir/$1"
  chgrp "$3" "$config_dir/$1"
}

# setting_of FILE NAME: prints the value of a setting as the programs read it; nothing if it is not set.
setting_of() {
  [ -e "$config_dir/$1" ] || return 0
  sed -nE "s/^[[:space:]]*(export[[:space:]]+)?$2[[:space:]]*=[[:space:]]*//p" "$config_dir/$1" | tail -n 1 |
    sed -E "s/^\"([^\"]*)\".*/\1/; t; s/^'([^']*)'.*/\1/; t; s/[[:space:]]*(#.*)?\$//"
}

# state_dir: prints the folder of the agent's state.
state_dir() {
  local set
  set=$(setting_of agent.conf GPURENT_AGENT_STATE_DIR)
  printf '%s\n' "${set:-/var/lib/gpurent-agent}"
}

# install_unit UNIT: installs a unit if it has changed. A reload of systemd can take GPUs from running containers, so it reloads
# only then. A timer is enabled by whoever wants it.
install_unit() {
  local unit=$units/$1 state=${state:-}
  # systemd reads %% as one percent sign, and sed these three characters as commands.
  state=${state//%/%%} && state=$(printf '%s' "$state" | sed 's/[\\&|]/\\&/g')
  sed "s|@NODE@|$service_node|; s|@STATE@|$state|" "$release/packaging/$1" >"$unit.new"
  if cmp -s "$unit.new" "$unit"; then
    rm "$unit.new"
    return
  fi
  mv "$unit.new" "$unit"
  systemctl daemon-reload
  if [[ "$1" != *.timer ]] && grep -q '^\[Install\]' "$unit"; then systemctl enable --quiet "$1"; fi
}

# remove_program PROGRAM UNIT...: removes a program. Its data and the release of the other program stay.
remove_program() {
  local program=$1 unit
  shift
  begin_step "stopping and removing $program"
  # One by one: systemctl does nothing at all if an older release has not installed one of them.
  for unit in "$@"; do systemctl disable --now --quiet "$unit" 2>/dev/null || true; done
  for unit in "$@"; do rm -f "$units/$unit"; done
  rm -f "/usr/local/bin/$program" "$prefix/${program#gpurent-}"
  systemctl daemon-reload
  systemctl reset-failed "$@" 2>/dev/null || true
  begin_step 'removing releases that nothing uses'
  remove_unused_releases
  end_step
}

# remove_unused_releases [KEEP...]: removes the releases that no program and no process uses, but for those that are named.
remove_unused_releases() {
  local each used=" $* "
  for each in "$prefix"/*; do if [ -L "$each" ]; then used+="$(readlink "$each") "; fi; done
  for each in "$prefix"/*; do
    if [ -d "$each" ] && [ ! -L "$each" ] && [[ "$used" != *" ${each##*/} "* ]] && ! has_process "$each"; then rm -rf "$each"; fi
  done
  rmdir "$prefix" 2>/dev/null || true
}

# has_process RELEASE: succeeds if a process runs from a release, as the access proxy may from an earlier one.
has_process() {
  local exe
  for exe in /proc/[0-9]*/exe; do
    if [[ "$(readlink "$exe" 2>/dev/null)" = "$1"/* ]]; then return 0; fi
  done
  return 1
}

# named_by FILE: prints what a settings file names that can hold secrets: files, folders, and the database with all beside it.
named_by() {
  local path
  [ -e "$config_dir/$1" ] || return 0
  sed -n 's/^GPURENT_[A-Z_]*\(_FILE\|_FOLDER\)=\(\/.*\)$/\2/p' "$config_dir/$1"
  sed -n 's/^GPURENT_DATABASE=\(\/.*\)$/\1/p' "$config_dir/$1" | while read -r path; do printf '%s\n' "$path"*; done
}

# take_from USER PATH...: gives what belongs to a user or its group, which are about to be deleted, to root alone. A later user or
# group can get the same number, and could read it.
take_from() {
  local user=$1 group path
  group=$(id -g "$user")
  shift
  for path in "$@"; do
    [ -e "$path" ] || continue
    find "$(realpath "$path")" \( -user "$user" -o -gid "$group" \) ! -type l -exec chown root:root {} + -exec chmod go= {} +
  done
}

# places_of_copies FILE: prints where gpurent-copies has put copies by these settings: folders that are there, and other machines.
places_of_copies() {
  local file=$config_dir/$1 folder place
  [ -e "$file" ] || return 0
  folder=$(sed -n 's/^[[:space:]]*GPURENT_COPIES_FOLDER[[:space:]]*=[[:space:]]*//p' "$file" | tail -n 1)
  {
    printf '%s\n' "${folder:-/root/gpurent-copies}"
    sed -n 's/^[[:space:]]*GPURENT_COPIES_TO[[:space:]]*=//p' "$file" | tail -n 1 | tr ', ' '\n\n'
  } | tr -d "\"'" | while read -r place; do
    case "$place" in
    sftp:*) printf '%s\n' "$place" ;;
    /*) if [ -e "$place" ]; then printf '%s\n' "$place"; fi ;;
    esac
  done
}

# say_copies PLACE...: names where copies of what was removed stay.
say_copies() {
  [ $# -gt 0 ] || return 0
  say 'the copies that gpurent-copies has made stay; delete them if nobody needs them:'
  printf '  %s\n' "$@" >&2
}

# say_kept PATH...: names those that are still there.
say_kept() {
  local path kept=()
  for path in "$@"; do if [ -e "$path" ]; then kept+=("$path"); fi; done
  [ ${#kept[@]} -gt 0 ] || return 0
  say 'these stay, because others made them; they can hold private keys, passwords and data:'
  printf '%s\n' "${kept[@]}" | sort -u | sed 's/^/  /' >&2
}

# restart_unit WHAT UNIT: restarts a unit and waits until it is ready. If it does not start, prints its last log lines.
restart_unit() {
  local what=$1 unit=$2 began=$EPOCHSECONDS
  begin_step "waiting for $what to start"
  if timeout 300 systemctl restart "$unit" 2>/dev/null; then
    end_step
    return
  fi
  end_step
  journalctl --sync 2>/dev/null || true
  journalctl --quiet --no-pager --output cat --since "@$began" "_SYSTEMD_UNIT=$unit" | tail -n 10 >&2 || true
  die "$what did not start, and systemd keeps trying; see its last log lines above, or all of them: journalctl -u $unit"
}

# set_setting FILE NAME VALUE: replaces the line of a setting, commented or not, or appends one.
set_setting() {
  local file=$config_dir/$1
  if grep -q "^#\?$2=" "$file"; then sed -i "s|^#\?$2=.*|$2=$3|" "$file"; else printf '%s=%s\n' "$2" "$3" >>"$file"; fi
}

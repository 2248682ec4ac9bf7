# Functions that every script of a checkout shares. Each installs or starts what is missing.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
local_dir=$root/.local
guest_tools=$local_dir/guest-tools
sample_image=gpurent/sample:1

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

# require_root REASON ARGUMENT...: dies with the command that has it.
require_root() {
  local reason=$1
  shift
  [ "$(id -u)" = 0 ] || die "$reason; run: sudo $0${*:+ $*}"
}

# What was made here as root belongs to whoever called sudo, whose own builds write it again.
give_back() {
  if [ -z "${SUDO_UID:-}" ] || [ "$SUDO_UID" = 0 ]; then return; fi
  local each owner=$SUDO_UID:${SUDO_GID:-$SUDO_UID}
  chown --from=0 "$owner" "$local_dir"
  for each in node_modules dist shared/gen "$local_dir"/*.log; do
    [ ! -e "$each" ] || chown -hR --from=0 "$owner" "$each"
  done
}

may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# apt_install REASON PACKAGE...
apt_install() {
  local reason=$1
  shift
  may_install || die "$reason: as root, run: apt-get install $*"
  say "installing $*"
  mkdir -p "$local_dir"
  { apt-get install -y -qq --no-install-recommends "$@" || { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; }; } \
    >"$local_dir/apt.log" 2>&1 </dev/null || die "apt-get install $* failed; see $local_dir/apt.log"
}

# Installs what provides the commands that are missing, all at once: COMMAND=PACKAGE...
require_commands() {
  local each missing=()
  for each in "$@"; do command -v "${each%%=*}" >/dev/null || missing+=("${each#*=}"); done
  [ ${#missing[@]} = 0 ] || apt_install 'what is missing is needed' "${missing[@]}"
}

# Which versions those are, package.json says.
require_node() {
  command -v node >/dev/null || die 'Node 20.19 or later is needed: https://nodejs.org'
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    die "Node 20.19 or later is needed, this is $(node --version)"
}

# The SQLite driver is compiled where no binary can be fetched.
require_compiler() {
  if packages_are_installed || ! may_install; then return; fi
  require_commands python3=python3 make=make g++=g++
}

packages_are_installed() { [ node_modules/.package-lock.json -nt package-lock.json ] && [ ! -e "$local_dir/uncompiled" ]; }

# Fetches the npm packages; what of them has to be compiled, compile_packages compiles.
install_packages() {
  if packages_are_installed; then return; fi
  say 'installing npm packages'
  mkdir -p "$local_dir"
  touch "$local_dir/uncompiled"
  npm ci --ignore-scripts --no-audit --no-fund >"$local_dir/npm.log" 2>&1 || die "npm ci failed; see $local_dir/npm.log"
}

compile_packages() {
  if [ ! -e "$local_dir/uncompiled" ]; then return; fi
  local prefix
  prefix=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
  if [ -e "$prefix/include/node/node.h" ]; then export npm_config_nodedir=$prefix; fi
  npm rebuild >"$local_dir/compile.log" 2>&1 || die "npm rebuild failed; see $local_dir/compile.log"
  rm "$local_dir/uncompiled"
}

build() {
  say 'building'
  npm run --silent build || die 'the build failed'
}

make_guest_tools() {
  if [ "$guest_tools/init" -nt agent/guest/init ] && [ "$guest_tools/init" -nt scripts/build-guest-tools ]; then return; fi
  command -v dpkg >/dev/null || die 'the tools for containers are made from Debian packages: run this on Debian or Ubuntu once'
  say 'building the tools that every container is given'
  "$root/scripts/build-guest-tools" "$guest_tools"
}

# supervise FUNCTION: runs it as a process group of its own, and passes on to all of it that this script is to end. Returns its
# exit status. A shell that waits for a foreground command would hear the signal only after that command.
supervise() {
  local job status
  set -m
  "$@" </dev/null &
  job=$!
  set +m
  # shellcheck disable=SC2064
  trap "kill -TERM -- -$job 2>/dev/null" INT TERM HUP
  while :; do
    status=0
    wait "$job" || status=$?
    kill -0 "$job" 2>/dev/null || return "$status"
  done
}

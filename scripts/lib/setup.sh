# Functions that the scripts of a checkout share. They install or start what is missing.
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

# remove_tree FOLDER...: removes it, but nothing of what is mounted in it. A program that was killed can leave the devices and the
# processes of this machine mounted in a tree that it was making.
remove_tree() {
  local each
  for each in "$@"; do
    findmnt --raw --noheadings --output TARGET | awk -v below="$(realpath -m "$each")/" 'index($1, below) == 1' | sort -r | xargs -r umount --lazy
    rm -rf --one-file-system "$each"
  done
}

# require_root REASON ARGUMENT...: dies without root, with the sudo command to run instead.
require_root() {
  local reason=$1
  shift
  [ "$(id -u)" = 0 ] || die "$reason; run: sudo $0${*:+ $*}"
}

# Gives files that root created here to the user who called sudo, so that later builds of that user can replace them.
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

# require_commands COMMAND=PACKAGE...: installs the packages of all missing commands at once.
require_commands() {
  local each missing=()
  for each in "$@"; do command -v "${each%%=*}" >/dev/null || missing+=("${each#*=}"); done
  [ ${#missing[@]} = 0 ] || apt_install 'some commands are missing' "${missing[@]}"
}

# package.json has the supported versions.
require_node() {
  command -v node >/dev/null ||
    die "Node is needed, one of $(engines): https://nodejs.org${SUDO_USER:+; if $SUDO_USER has one, sudo hides it: sudo env \"PATH=\$PATH\" $0}"
  node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
    const ranges = require("./package.json").engines.node.split("||").map((range) => range.trim().slice(1).split(".").map(Number));
    process.exit(ranges.some(([itsMajor, itsMinor]) => major === itsMajor && minor >= itsMinor) ? 0 : 1)' ||
    die "one of these versions of Node is needed: $(engines); this is $(node -p process.version)"
}
engines() { sed -n 's/.*"node": "\([^"]*\)".*/\1/p' package.json | sed 's/ *|| */, /g; s/\^//g'; }

# The SQLite driver must be compiled if npm cannot fetch a binary.
require_compiler() {
  if packages_are_installed && driver_works || ! may_install; then return; fi
  require_commands python3=python3 make=make g++=g++
}

packages_are_installed() { [ node_modules/.package-lock.json -nt package-lock.json ] && [ ! -e "$local_dir/uncompiled" ]; }

# Fetches the npm packages; compile_packages compiles the SQLite driver, the only one that needs it.
install_packages() {
  if packages_are_installed; then return; fi
  say 'installing npm packages'
  mkdir -p "$local_dir"
  touch "$local_dir/uncompiled"
  npm ci --ignore-scripts --no-audit --no-fund >"$local_dir/npm.log" 2>&1 || die "npm ci failed; see $local_dir/npm.log"
}

compile_packages() {
  if [ -e "$local_dir/uncompiled" ]; then
    rebuild_driver
    rm "$local_dir/uncompiled"
  fi
  if driver_works; then return; fi
  say "compiling the SQLite driver for Node $(node --version)"
  keep_driver
  compile_driver "$(node -p 'process.versions.node.split(".")[0]')" node_modules/better-sqlite3
  driver_works || die "the SQLite driver does not work with Node $(node --version); see $local_dir/compile.log"
}

# Fetches the SQLite driver for this Node, or compiles it.
rebuild_driver() {
  local prefix
  prefix=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
  if [ -e "$prefix/include/node/node.h" ]; then export npm_config_nodedir=$prefix; fi
  npm rebuild better-sqlite3 >"$local_dir/compile.log" 2>&1 || die "npm rebuild failed; see $local_dir/compile.log"
  unset npm_config_nodedir
}

# Succeeds if the SQLite driver loads in this Node and does not abort it: one compiled with headers of Node 24.19 or later aborts
# Node 24 (nodejs/node#65446).
driver_works() {
  node -e 'require("better-sqlite3")(":memory:"); const file = Object.keys(require.cache).find((each) => each.endsWith(".node"));
    if (process.version.startsWith("v24.") && require("fs").readFileSync(file).includes("RemoveEnvironmentCleanupHook")) process.exit(1)' 2>/dev/null
}

# compile_driver MAJOR FOLDER: compiles the SQLite driver for a version of Node, into a folder with one driver for each version.
compile_driver() {
  local version=$1 work driver
  if [ "$version" = 24 ]; then version=24.18.1; fi
  fetch_node "$version"
  work=$(mktemp -d)
  tar -C node_modules -cf - --exclude build better-sqlite3 | tar -C "$work" -xf -
  mkdir -p "$local_dir"
  (
    cd "$work/better-sqlite3" &&
      PATH=$fetched/bin:$PATH npm_config_nodedir=$fetched npm_config_build_from_source=true npm run --silent install
  ) >"$local_dir/compile.log" 2>&1 </dev/null || die "$(tail -n 20 "$local_dir/compile.log")"
  driver=$work/better-sqlite3/build/Release/better_sqlite3.node
  place_driver "$driver" "$2"
  rm -rf "$work"
}

# Moves a driver for another version of Node to the folder of that version; this Node would otherwise load it.
keep_driver() {
  local sqlite=node_modules/better-sqlite3
  if [ -e "$sqlite/build/Release/better_sqlite3.node" ]; then place_driver "$sqlite/build/Release/better_sqlite3.node" "$sqlite"; fi
  rm -rf "$sqlite/build"
}

place_driver() { # FILE FOLDER
  local abi to
  abi=$(grep -aoE -m 1 'node_register_module_v[0-9]+' "$1" | head -n 1)
  to=$2/lib/binding/node-v${abi#node_register_module_v}-$(node -p 'process.platform + "-" + process.arch')
  mkdir -p "$to"
  cp "$1" "$to/.new"
  mv "$to/.new" "$to/better_sqlite3.node"
}

# fetch_node VERSION: sets `fetched` to a folder with that Node and its headers; 24 means the newest 24.x.
fetch_node() {
  fetched=$local_dir/nodes/$1
  if [ -e "$fetched/bin/node" ]; then return; fi
  say "fetching Node $1"
  rm -rf "$fetched"
  mkdir -p "$fetched"
  (cd "$fetched" && npm pack --silent "node-$(node -p 'process.platform + "-" + process.arch')@$1" | tail -n 1 | xargs tar --strip-components 1 -xzf && rm -f ./*.tgz) \
    >&2 || die "Node $1 cannot be fetched from the npm registry"
}

build() {
  # Programs of other tests run from what is built: a second build would take it away under them.
  if [ -n "${TEST_IS_BUILT:-}" ]; then return; fi
  say 'building'
  npm run --silent build || die 'the build failed'
}

make_guest_tools() {
  if [ "$guest_tools/init" -nt agent/guest/init ] && [ "$guest_tools/init" -nt scripts/build-guest-tools ]; then return; fi
  command -v dpkg >/dev/null || die 'the guest tools are built from Debian packages: run this on Debian or Ubuntu once'
  say 'building the guest tools'
  "$root/scripts/build-guest-tools" "$guest_tools"
}

# supervise FUNCTION: runs it in its own process group, and sends TERM to the whole group when this script gets a signal.
# Returns its exit status. It runs in the background because bash handles a signal only after a foreground command has ended.
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

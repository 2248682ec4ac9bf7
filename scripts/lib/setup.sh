# Functions that quickstart and test share. Each installs or starts what is missing, and stops what it started.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
local_dir=$root/.local
guest_tools=$local_dir/guest-tools
sample_image=gpurent/sample:1
debian_image=gpurent/debian:1
vm_runner=localhost/gpurent/vm-runner:1
systemd_image=gpurent/systemd:1
release_dir=$local_dir/release
dockerd_pid=

say() { printf '%s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
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

require_node() {
  command -v node >/dev/null || die 'Node 20.19 or later is needed: https://nodejs.org'
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' ||
    die "Node 20.19 or later is needed, this is $(node --version)"
}

install_packages() {
  if [ node_modules/.package-lock.json -nt package-lock.json ]; then return; fi
  # The SQLite driver is compiled where no binary can be fetched.
  if may_install; then
    command -v g++ >/dev/null && command -v make >/dev/null && command -v python3 >/dev/null ||
      apt_install 'a compiler is needed' python3 make g++
  fi
  local prefix
  prefix=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
  if [ -e "$prefix/include/node/node.h" ]; then export npm_config_nodedir=$prefix; fi
  say 'installing npm packages'
  mkdir -p "$local_dir"
  npm ci --no-audit --no-fund >"$local_dir/npm.log" 2>&1 || die "npm ci failed; see $local_dir/npm.log"
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

require_command() { # COMMAND PACKAGE
  command -v "$1" >/dev/null || apt_install "$1 is needed" "$2"
}

docker_answers() { docker version >/dev/null 2>&1; }

# Uses the Docker that is there; where there is none, installs it and starts it for as long as this script runs.
ensure_docker() {
  if command -v docker >/dev/null && docker_answers; then return; fi
  if [ -n "${DOCKER_HOST:-}" ]; then die "Docker does not answer at $DOCKER_HOST: start it, or unset DOCKER_HOST"; fi
  command -v dockerd >/dev/null || apt_install 'Docker is needed' docker.io iptables
  command -v iptables >/dev/null || apt_install 'iptables is needed by Docker' iptables
  if docker_answers; then return; fi
  [ "$(id -u)" = 0 ] || die 'Docker does not answer: start it ("sudo systemctl start docker") and join its group'
  if [ -d /run/systemd/system ]; then
    systemctl start docker || die 'Docker did not start: see "journalctl -u docker"'
    docker_answers || die 'Docker was started and does not answer: see "journalctl -u docker"'
    return
  fi
  start_dockerd
}

start_dockerd() {
  local run
  # One that an earlier run was not able to stop holds the data folder: it is used, and left.
  if [ -e "$local_dir/dockerd-run" ]; then
    DOCKER_HOST=unix://$(cat "$local_dir/dockerd-run")/docker.sock
    export DOCKER_HOST
    if docker_answers; then return; fi
    unset DOCKER_HOST
  fi
  run=$(mktemp -d /tmp/gpurent-docker-XXXXXX)
  say 'starting Docker for the time of this run'
  mkdir -p "$local_dir/docker"
  echo "$run" >"$local_dir/dockerd-run"
  setsid dockerd -H "unix://$run/docker.sock" --data-root "$local_dir/docker" --exec-root "$run/exec" --pidfile "$run/docker.pid" \
    >"$local_dir/dockerd.log" 2>&1 </dev/null &
  dockerd_pid=$!
  dockerd_run=$run
  export DOCKER_HOST=unix://$run/docker.sock
  for _ in $(seq 120); do
    if docker_answers; then return; fi
    kill -0 "$dockerd_pid" 2>/dev/null || break
    sleep 0.5
  done
  stop_dockerd
  die "Docker did not start; see $local_dir/dockerd.log"
}

stop_dockerd() {
  if [ -z "$dockerd_pid" ]; then return; fi
  kill "$dockerd_pid" 2>/dev/null || true
  wait "$dockerd_pid" 2>/dev/null || true
  rm -rf "$dockerd_run" "$local_dir/dockerd-run"
  dockerd_pid=
}

# A small image of a static shell and nothing else, made here: no registry is asked.
make_sample_image() {
  if docker image inspect "$sample_image" >/dev/null 2>&1; then return; fi
  local tree
  tree=$(mktemp -d)
  mkdir -p "$tree/bin" "$tree/tmp"
  chmod 1777 "$tree/tmp"
  cp "$guest_tools/bin/busybox" "$tree/bin/busybox"
  "$tree/bin/busybox" --install -s "$tree/bin"
  for link in "$tree"/bin/*; do if [ -L "$link" ]; then ln -sf busybox "$link"; fi; done
  tar -C "$tree" -c . | docker import - "$sample_image" >/dev/null
  rm -rf "$tree"
}

# A Debian with Python, as renters' images are built on it: an account that is not root, and a program that is setuid.
make_debian_image() {
  if docker image inspect "$debian_image" >/dev/null 2>&1; then return; fi
  local tree
  tree=$(mktemp -d)
  say 'making an image of Debian for the tests'
  debootstrap --variant=minbase --include=python3 bookworm "$tree" >"$local_dir/debootstrap.log" 2>&1 ||
    die "debootstrap failed; see $local_dir/debootstrap.log"
  rm -rf "$tree/var/cache/apt/archives" "$tree/var/lib/apt/lists"
  chroot "$tree" useradd --create-home --shell /bin/bash worker
  cp "$tree/bin/cat" "$tree/usr/local/bin/rootcat"
  chmod 4755 "$tree/usr/local/bin/rootcat"
  cp "$root/test/images/app.py" "$tree/srv/app.py"
  tar -C "$tree" -c . | docker import - "$debian_image" >/dev/null
  rm -rf "$tree"
}

# What virtual machines run in, anew whenever its sources have changed.
make_vm_runner() {
  local sources
  sources=$(cat "$root/agent/vm-runner/runner" "$root/scripts/build-vm-runner" | sha256sum | cut -c 1-16)
  if [ "$(docker image inspect -f '{{index .Config.Labels "gpurent.sources"}}' "$vm_runner" 2>/dev/null)" = "$sources" ]; then return; fi
  say 'building what virtual machines run in'
  "$root/scripts/build-vm-runner" "$vm_runner"
}

# Disks that the tests boot.
make_vm_images() {
  if docker image inspect gpurent/vm-debian:1 gpurent/vm-uefi:1 >/dev/null 2>&1; then return; fi
  require_command sfdisk fdisk
  require_command mkfs.vfat dosfstools
  require_command mcopy mtools
  require_command cpio cpio
  [ -e /usr/lib/syslinux/mbr/mbr.bin ] && command -v syslinux >/dev/null || apt_install 'syslinux is needed' syslinux syslinux-common
  say 'making disks for virtual machines to boot'
  "$root/test/rig/make-vm-images" gpurent/vm
}

# A Debian with systemd and Docker, as machines are on which releases are installed; Node is the one that runs here.
make_systemd_image() {
  local here wanted
  wanted=$(node --version)
  here=$(docker image inspect --format '{{.Comment}}' "$systemd_image" 2>/dev/null || true)
  if [ "$here" = "$wanted" ]; then return; fi
  local tree
  tree=$(mktemp -d)
  say 'making a machine with systemd for the tests'
  debootstrap --variant=minbase \
    --include=systemd,systemd-sysv,dbus,docker.io,iptables,iproute2,procps,openssh-client,ca-certificates,curl \
    bookworm "$tree" >"$local_dir/debootstrap.log" 2>&1 || die "debootstrap failed; see $local_dir/debootstrap.log"
  rm -rf "$tree/var/cache/apt/archives" "$tree/var/lib/apt/lists"
  cp "$(readlink -f "$(command -v node)")" "$tree/usr/local/bin/node"
  tar -C "$tree" -c . | docker import --message "$wanted" - "$systemd_image" >/dev/null
  rm -rf "$tree"
}

make_release() {
  say 'making a release'
  rm -rf "$release_dir"
  "$root/scripts/release" "$release_dir" >/dev/null 2>"$local_dir/release.log" || die "$(cat "$local_dir/release.log")"
}

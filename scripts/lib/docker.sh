# Runs a Docker Engine while a script runs. Needs setup.sh and processor.sh.
# shellcheck shell=bash

dockerd_pid=
engine=

docker_answers() { docker version >/dev/null 2>&1; }

# Uses the running Docker. If there is none, installs Docker and runs it until this script ends.
ensure_docker() {
  if command -v docker >/dev/null && docker_answers; then return; fi
  if [ -n "${DOCKER_HOST:-}" ]; then die "Docker does not answer at $DOCKER_HOST: start it, or unset DOCKER_HOST"; fi
  require_dockerd
  if docker_answers; then return; fi
  if [ -d /run/systemd/system ]; then
    systemctl start docker || die 'Docker did not start: see "journalctl -u docker"'
    docker_answers || die 'Docker was started but does not answer: see "journalctl -u docker"'
    return
  fi
  # A Docker that an earlier run could not stop holds the data folder: this run uses it and does not stop it.
  if [ -e "$local_dir/docker.run" ]; then
    DOCKER_HOST=unix://$(cat "$local_dir/docker.run")/docker.sock
    export DOCKER_HOST
    if docker_answers; then return; fi
    unset DOCKER_HOST
  fi
  start_dockerd docker
}

require_dockerd() { require_commands dockerd=docker.io iptables=iptables; }

# start_dockerd NAME: keeps its data in .local/NAME between runs.
start_dockerd() {
  local data=$local_dir/$1 run
  run=$(mktemp -d "${TMPDIR:-/tmp}/docker-XXXXXX")
  say 'starting Docker for this run'
  mkdir -p "$data"
  # dockerd panics when it finds half of a network, which a killed run leaves. No run needs the networks of an earlier one.
  rm -rf "$data/network"
  echo "$run" >"$data.run"
  # cgroupfs, because systemd does not know these processes.
  (
    enter_processor_group "engines/$1/daemon"
    exec setsid dockerd -H "unix://$run/docker.sock" --data-root "$data" --exec-root "$run/exec" --pidfile "$run/docker.pid" \
      --exec-opt native.cgroupdriver=cgroupfs $(parent_of_containers "$1")
  ) >"$data.log" 2>&1 </dev/null &
  dockerd_pid=$!
  engine=$1
  dockerd_run=$run
  dockerd_data=$data
  export DOCKER_HOST=unix://$run/docker.sock
  weight_containers
  for _ in $(seq 120); do
    if docker_answers; then return; fi
    kill -0 "$dockerd_pid" 2>/dev/null || break
    sleep 0.5
  done
  stop_dockerd
  die "Docker did not start; see $data.log"
}

# parent_of_containers ENGINE: prints the option that lets the containers count for the engine. Where there are both kinds of control
# groups, Docker knows only the older ones, and containers stay in the newer group of the engine.
parent_of_containers() {
  if [ -n "${processor_group:-}" ] && [ ! -e /sys/fs/cgroup/cpu ]; then echo "--cgroup-parent=/${processor_group##*/}/engines/$1/containers"; fi
}

# Gives all containers together the processor weight of four processes: by default they have the weight of one, and beside other
# lanes an emulated machine gets a tenth of a processor.
weight_containers() {
  local cgroups=/sys/fs/cgroup
  if [ -e $cgroups/cpu/cpu.shares ]; then
    mkdir -p $cgroups/cpu/docker && echo 4096 >$cgroups/cpu/docker/cpu.shares
  elif [ -n "${processor_group:-}" ] && [ -e "$processor_group/engines/cpu.weight" ]; then
    echo 400 >"$processor_group/engines/cpu.weight"
  elif grep -qw cpu $cgroups/cgroup.subtree_control; then
    mkdir -p $cgroups/docker && echo 400 >$cgroups/docker/cpu.weight
  fi 2>/dev/null || say 'the containers of the tests keep their processor weight: the control groups cannot be written here'
}

stop_dockerd() {
  if [ -z "$dockerd_pid" ]; then return; fi
  kill "$dockerd_pid" 2>/dev/null || true
  wait "$dockerd_pid" 2>/dev/null || true
  rm -rf "$dockerd_run" "$dockerd_data.run"
  dockerd_pid=
  engine=
}

# Creates a small image with only a static shell, without a registry.
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

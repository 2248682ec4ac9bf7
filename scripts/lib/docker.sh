# A Docker Engine for as long as a script runs. Needs setup.sh.
# shellcheck shell=bash

dockerd_pid=

docker_answers() { docker version >/dev/null 2>&1; }

# Uses the Docker that is there; where there is none, installs it and starts it for as long as this script runs.
ensure_docker() {
  if command -v docker >/dev/null && docker_answers; then return; fi
  if [ -n "${DOCKER_HOST:-}" ]; then die "Docker does not answer at $DOCKER_HOST: start it, or unset DOCKER_HOST"; fi
  require_dockerd
  if docker_answers; then return; fi
  if [ -d /run/systemd/system ]; then
    systemctl start docker || die 'Docker did not start: see "journalctl -u docker"'
    docker_answers || die 'Docker was started and does not answer: see "journalctl -u docker"'
    return
  fi
  # One that an earlier run was not able to stop holds the data folder: it is used, and left.
  if [ -e "$local_dir/docker.run" ]; then
    DOCKER_HOST=unix://$(cat "$local_dir/docker.run")/docker.sock
    export DOCKER_HOST
    if docker_answers; then return; fi
    unset DOCKER_HOST
  fi
  start_dockerd docker
}

require_dockerd() { require_commands dockerd=docker.io iptables=iptables; }

# start_dockerd NAME: its data stays in .local/NAME from run to run.
start_dockerd() {
  local data=$local_dir/$1 run
  run=$(mktemp -d "${TMPDIR:-/tmp}/docker-XXXXXX")
  say 'starting Docker for the time of this run'
  mkdir -p "$data"
  echo "$run" >"$data.run"
  # cgroupfs: systemd cannot be asked for what it does not see.
  setsid dockerd -H "unix://$run/docker.sock" --data-root "$data" --exec-root "$run/exec" --pidfile "$run/docker.pid" \
    --exec-opt native.cgroupdriver=cgroupfs >"$data.log" 2>&1 </dev/null &
  dockerd_pid=$!
  dockerd_run=$run
  dockerd_data=$data
  export DOCKER_HOST=unix://$run/docker.sock
  for _ in $(seq 120); do
    if docker_answers; then return; fi
    kill -0 "$dockerd_pid" 2>/dev/null || break
    sleep 0.5
  done
  stop_dockerd
  die "Docker did not start; see $data.log"
}

stop_dockerd() {
  if [ -z "$dockerd_pid" ]; then return; fi
  kill "$dockerd_pid" 2>/dev/null || true
  wait "$dockerd_pid" 2>/dev/null || true
  rm -rf "$dockerd_run" "$dockerd_data.run"
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

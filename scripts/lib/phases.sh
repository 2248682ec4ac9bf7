# Phases (commands whose output and time are kept) and lanes (phases in a row, beside other lanes). Needs setup.sh.
# shellcheck shell=bash

phases_dir=$local_dir/phases
lanes=()

# phase NAME COMMAND...: runs it and prints what it took; prints its output, and ends the lane, where it fails.
phase() {
  local name=$1 began=$EPOCHREALTIME status=0 took
  shift
  # In the background, not in a condition: there bash forgets -e.
  (
    set -e
    "$@"
  ) >"$phases_dir/$name.log" 2>&1 </dev/null &
  wait $! || status=$?
  took=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")
  if [ "$status" != 0 ]; then
    cat "$phases_dir/$name.log" >&2
    die "$name failed after $took s"
  fi
  say "$name: $took s"
  # What test runners and simulations conclude.
  grep -aE '(Test Files|Tests) .* (passed|failed)|^\{' "$phases_dir/$name.log" >&2 || true
  echo "$name $took" >>"$phases_dir/times"
  reached "$name"
}

# Lets the lanes go on that wait for it.
reached() { touch "$phases_dir/$1.reached"; }

# Waits for what other lanes reach. One that fails ends all of them.
after() {
  local name
  for name in "$@"; do until [ -e "$phases_dir/$name.reached" ]; do sleep 0.2; done; done
}

# lane FUNCTION...: runs it beside this shell, as a process group of its own.
lane() {
  set -m
  (
    trap '[ $? = 0 ] || kill -USR1 $$' EXIT
    "$@"
  ) </dev/null &
  lanes+=($!)
  set +m
}

# Runs until all lanes have ended, or one has failed. Whatever ends this script ends them.
run_lanes() {
  rm -rf "$phases_dir"
  mkdir -p "$phases_dir"
  TMPDIR=$(mktemp -d /tmp/gpurent-XXXXXX)
  # A test that becomes another user finds its files by their names.
  chmod 711 "$TMPDIR"
  export TMPDIR
  trap end_lanes EXIT
  trap 'exit 1' USR1
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  local each
  for each in "$@"; do lane $each; done
  for each in "${lanes[@]}"; do wait "$each"; done
}

end_lanes() {
  local each
  # The first process of a sandbox hears nothing else.
  for each in "${lanes[@]}"; do kill -KILL -- "-$each" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$TMPDIR"
}

# in_sandbox FUNCTION...: runs it where processes, network devices, packet rules and mounts are its own, and end with it. It
# reaches nothing outside this machine.
in_sandbox() {
  unshare --pid --net --mount --fork --mount-proc --kill-child bash -c '
    set -euo pipefail
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    ip link set lo up
    source scripts/lib/test-lanes.sh
    "$@"' sandbox "$@"
}

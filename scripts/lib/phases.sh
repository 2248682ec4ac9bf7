# Phases (commands with recorded output and time) and lanes (sequences of phases that run in parallel). Needs setup.sh.
# shellcheck shell=bash

phases_dir=$local_dir/phases
lanes=()

# phase NAME COMMAND...: runs the command and prints its time. If it fails, prints its output and ends the lane.
phase() {
  local name=$1 began=$EPOCHREALTIME status=0 took
  shift
  # In the background, not in a condition: bash ignores -e in conditions.
  (
    set -e
    # What it has computed, in seconds of a processor; engines and their containers are not children of it.
    trap 'times >"$phases_dir/$name.processor"' EXIT
    # For programs that write a report.
    export report=$phases_dir/$name.json
    "$@"
  ) >"$phases_dir/$name.log" 2>&1 </dev/null &
  wait $! || status=$?
  took=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")
  if [ "$status" != 0 ]; then
    cat "$phases_dir/$name.log" >&2
    die "$name failed after $took s"
  fi
  say "$name: $took s"
  # The summaries of test runners and simulations.
  grep -aE '(Test Files|Tests) .* (passed|failed)|^\{' "$phases_dir/$name.log" >&2 || true
  echo "$name $took $(computed "$phases_dir/$name.processor")" >>"$phases_dir/times"
  reached "$name"
}

# computed FILE: the sum of what `times` says of a shell and its children, such as 1m2.3s, in seconds.
computed() { tr -s ' s' '\n' <"$1" | awk -F m 'NF == 2 { sum += 60 * $1 + $2 } END { printf "%.1f", sum }'; }

# reached NAME: lets lanes continue that wait for NAME.
reached() { touch "$phases_dir/$1.reached"; }

# after NAME...: waits until other lanes have reached each NAME. A lane that fails ends all lanes.
after() {
  local name
  for name in "$@"; do until [ -e "$phases_dir/$name.reached" ]; do sleep 0.2; done; done
}

# lane FUNCTION...: runs it in the background, in its own process group.
lane() {
  set -m
  (
    trap '[ $? = 0 ] || kill -USR1 $$' EXIT
    "$@"
  ) </dev/null &
  lanes+=($!)
  set +m
}

# run_lanes LANE...: runs lanes until all have ended or one has failed. The end of this script ends them.
run_lanes() {
  rm -rf "$phases_dir"
  mkdir -p "$phases_dir"
  TMPDIR=$(mktemp -d /tmp/gpurent-XXXXXX)
  # Tests that switch to another user must be able to reach their files here.
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
  # The first process of a PID namespace ignores weaker signals.
  for each in "${lanes[@]}"; do kill -KILL -- "-$each" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$TMPDIR"
}

# in_sandbox FUNCTION...: runs it in its own namespaces of processes, network and mounts, which end with it. It cannot reach
# anything outside this machine.
in_sandbox() {
  unshare --pid --net --mount --fork --mount-proc --kill-child bash -c '
    set -euo pipefail
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    ip link set lo up
    source scripts/lib/test-lanes.sh
    "$@"' sandbox "$@"
}

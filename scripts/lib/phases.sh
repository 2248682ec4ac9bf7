# Phases (commands with recorded output, time and processor time) and lanes (sequences of phases that run in parallel). Needs
# setup.sh and processor.sh.
# shellcheck shell=bash

phases_dir=$local_dir/phases
lanes=()

# phase NAME COMMAND...: runs the command and prints its time. If it fails, the lane ends, and `say_failures` prints the output.
phase() {
  local name=$1 began=$EPOCHREALTIME status=0 took before
  shift
  before=$(used_by_engine)
  # In the background, not in a condition: bash ignores -e in conditions.
  (
    set -e
    enter_processor_group "$name"
    trap 'times >"$phases_dir/$name.processor"' EXIT
    # For programs that write a report.
    export report=$phases_dir/$name.json
    "$@"
  ) >"$phases_dir/$name.log" 2>&1 </dev/null &
  wait $! || status=$?
  took=$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $began }")
  echo "$name $took $(used_by_phase "$name" "$before") $status" >>"$phases_dir/times"
  if [ "$status" != 0 ]; then
    say "$name: FAILED after $took s; the other phases go on"
    [ -n "${lane_goes_on:-}" ] || exit 1
    return
  fi
  say "$name: $took s"
  # The summaries of test runners and simulations.
  grep -aE '(Test Files|Tests) .* (passed|failed)|^\{' "$phases_dir/$name.log" >&2 || true
  reached "$name"
}

# tests NAME COMMAND...: a phase that nothing else needs: the lane goes on if it fails.
tests() {
  local lane_goes_on=1
  phase "$@"
}

# failed_phases: prints the name of each phase that has failed.
failed_phases() { if [ -e "$phases_dir/times" ]; then awk '$4 != 0 { print $1 }' "$phases_dir/times"; fi; }

# say_failures: prints the output of each phase that has failed.
say_failures() {
  local name
  for name in $(failed_phases); do
    say "---- $name ----"
    cat "$phases_dir/$name.log" >&2
  done
}

# reached NAME: lets lanes continue that wait for NAME.
reached() { touch "$phases_dir/$1.reached"; }

# after NAME...: waits until other lanes have reached each NAME. Ends the lane if none will.
after() {
  local name waiting=
  # What a lane runs in the background may wait while the lane goes on.
  if [ "$BASHPID" = "${lane_pid:-}" ]; then waiting=$phases_dir/waiting-$lane_number; fi
  for name in "$@"; do
    if [ -n "$waiting" ]; then echo "$name" >"$waiting"; fi
    until [ -e "$phases_dir/$name.reached" ]; do
      if ! some_lane_goes_on; then
        say "what needs $name cannot run: the phase that makes it has failed"
        exit 1
      fi
      sleep 0.2
    done
  done
  if [ -n "$waiting" ]; then rm -f "$waiting"; fi
}

# some_lane_goes_on: succeeds if a lane has neither ended nor waits for what has not been reached.
some_lane_goes_on() {
  local lane waiting
  for lane in "$phases_dir"/lane-*; do
    if [ ! -e "$lane" ]; then continue; fi
    waiting=$phases_dir/waiting-${lane##*-}
    if [ ! -s "$waiting" ] || [ -e "$phases_dir/$(cat "$waiting").reached" ]; then return 0; fi
  done
  return 1
}

# lane FUNCTION...: runs it in the background, in its own process group.
lane() {
  local lane_number=${#lanes[@]}
  touch "$phases_dir/lane-$lane_number"
  set -m
  (
    lane_pid=$BASHPID
    trap 'rm -f "$phases_dir/lane-$lane_number"' EXIT
    "$@"
  ) </dev/null &
  lanes+=($!)
  set +m
}

# start_phases: makes the folder and the control group of a run. The end of this script ends what has been started.
start_phases() {
  rm -rf "$phases_dir"
  mkdir -p "$phases_dir"
  TMPDIR=$(mktemp -d /tmp/gpurent-XXXXXX)
  # Tests that switch to another user must be able to reach their files here.
  chmod 711 "$TMPDIR"
  export TMPDIR
  make_processor_group
  trap end_lanes EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

# run_lanes LANE...: runs lanes until all have ended. Sets `lanes_failed` if one has failed: in a condition, bash would ignore -e.
run_lanes() {
  local each
  lanes_failed=
  lane_ended_early=
  # No lane may find out that the others have ended before they have begun.
  touch "$phases_dir/lane-beginning"
  for each in "$@"; do lane $each; done
  rm "$phases_dir/lane-beginning"
  for each in "${lanes[@]}"; do wait "$each" || lane_ended_early=1; done
  lanes=()
  if [ -n "$lane_ended_early$(failed_phases)" ]; then lanes_failed=1; fi
}

end_lanes() {
  local each
  # The first process of a PID namespace ignores weaker signals.
  for each in "${lanes[@]}"; do kill -KILL -- "-$each" 2>/dev/null || true; done
  wait 2>/dev/null || true
  remove_processor_group
  remove_tree "$TMPDIR"
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
    source scripts/lib/test-nights.sh
    "$@"' sandbox "$@"
}

# What phases compute, in seconds of a processor. The kernel counts it for control groups: with Docker Engines, their containers,
# browsers and emulated processors. Where this script cannot make control groups, `times` of the shell counts its own children.
# shellcheck shell=bash

# Sets `processor_group` to a new control group. Each phase gets one below it, and each Docker Engine one below `engines`.
make_processor_group() {
  local tree
  tree=$(findmnt --raw --noheadings --types cgroup2 --output TARGET | head -n 1) || true
  export processor_group=${tree:+$tree/gpurent-tests-$$}
  mkdir "$processor_group" 2>/dev/null || processor_group=
  if [ -z "$processor_group" ]; then return; fi
  mkdir "$processor_group/engines"
  # Each group below it then has a weight of its own, where the kernel counts and shares processors by the same groups.
  echo +cpu 2>/dev/null >"$processor_group/cgroup.subtree_control" || true
}

remove_processor_group() {
  rmdir /sys/fs/cgroup/cpu/gpurent-gaps 2>/dev/null || true
  if [ -n "${processor_group:-}" ]; then find "$processor_group" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
}

# enter_processor_group NAME: moves this shell, and so all that it starts from here, to the group of a phase or an engine.
enter_processor_group() {
  if [ -z "${processor_group:-}" ]; then return; fi
  mkdir -p "$processor_group/$1"
  if [ -n "${computes_in_gaps:-}" ] && [ -e "$processor_group/$1/cpu.weight" ]; then echo 5 >"$processor_group/$1/cpu.weight"; fi
  # 0 is the process that writes.
  echo 0 >"$processor_group/$1/cgroup.procs"
}

# compute_in_gaps: lets this shell, and all that it starts from here, compute in the gaps of the other lanes, which have real
# deadlines. All of it together has a fifth of the weight of a lane, and not none (SCHED_IDLE): test runners expect answers of their
# own processes within a minute.
compute_in_gaps() {
  local older=/sys/fs/cgroup/cpu/gpurent-gaps
  export computes_in_gaps=1
  if [ -e /sys/fs/cgroup/cpu/cpu.shares ] && mkdir -p $older 2>/dev/null; then
    echo 200 >$older/cpu.shares
    echo 0 >$older/cgroup.procs
  elif [ ! -e "${processor_group:-}/engines/cpu.weight" ]; then
    renice -n 10 $BASHPID >/dev/null
  fi
}

# used_by GROUP: seconds until now.
used_by() { awk '$1 == "usage_usec" { printf "%.1f", $2 / 1e6 }' "$processor_group/$1/cpu.stat" 2>/dev/null || echo 0; }

# used_by_engine: seconds of the engine that this lane has started, with its containers.
used_by_engine() { if [ -n "${processor_group:-}" ] && [ -n "${engine:-}" ]; then used_by "engines/$engine"; else echo 0; fi; }

# used_by_phase NAME BEFORE: seconds of the phase, and of the engine since it had used BEFORE.
used_by_phase() {
  if [ -n "${processor_group:-}" ]; then
    awk "BEGIN { printf \"%.1f\", $(used_by "$1") + $(used_by_engine) - $2 }"
  else
    # The sum of what `times` says of a shell and its children, such as 1m2.3s.
    tr -s ' s' '\n' <"$phases_dir/$1.processor" | awk -F m 'NF == 2 { sum += 60 * $1 + $2 } END { printf "%.1f", sum }'
  fi
}

# The parts of a night: what takes too long for each change. What has passed at this commit is not run again, so a night that was
# interrupted goes on where it was. Needs test-lanes.sh.
# shellcheck shell=bash

# In this order; a name is what `scripts/test --nightly NAME` takes.
parts=(release quick month-end changed-map deep docker vm machine services browser alerts busy nodes simulation steps mutants mutation)

# The supported major versions of Node; the tests use the newest of each.
nodes=(20 22 24 26)
busy_rounds=10

# run_night [PART...]: all parts, or these. Fails if one has failed.
run_night() {
  local part passed_dir
  for part in "$@"; do [[ " ${parts[*]} " == *" $part "* ]] || die "there is no part $part of the night; there are: ${parts[*]}"; done
  [ "$(id -u)" = 0 ] || die 'the night needs root: it runs Docker Engines of its own'
  # Longer, and with new seeds.
  export TEST_NIGHTLY=1 TEST_FUZZ_REQUESTS=10000 TEST_ROUNDS=30 TEST_KILLS=20 TEST_ALL_CELLS=1 TEST_ALL_SEEDS=1
  export TEST_IS_BUILT=1
  passed_dir=$local_dir/nights/$(state_of_checkout)
  mkdir -p "$passed_dir"
  require_node
  require_compiler
  start_phases
  phase packages install_packages
  phase compile compile_packages
  phase build npm run --silent build
  phase tools make_tools
  calibrate
  reached program
  lanes_failed=
  night_failed=
  for part in "${@:-${parts[@]}}"; do
    if [ -e "$passed_dir/$part" ]; then
      echo "$part: passed at $(cat "$passed_dir/$part")" >>"$phases_dir/not-run"
    else
      run_part "$part"
    fi
  done
  lanes_failed=$lanes_failed$night_failed
  judge_run --nightly
}

# run_part PART: notes that it has passed, with the time that it took.
run_part() {
  local before=$SECONDS failed
  failed=$(failed_phases | wc -l)
  say "part $1"
  # In a lane of its own: a part that ends early ends nothing else.
  run_lanes "part_$1"
  if [ -n "$lane_ended_early" ]; then
    say "part $1: FAILED"
    night_failed=1
  elif [ "$(failed_phases | wc -l)" = "$failed" ]; then
    echo "$(date -u +%FT%TZ), in $((SECONDS - before)) s" >"$passed_dir/$1"
    say "part $1: $((SECONDS - before)) s"
  fi
}

# Prints a name for this commit and what is changed in the working tree.
state_of_checkout() {
  echo "$(git rev-parse --short HEAD)$({ git diff HEAD && git ls-files --others --exclude-standard -z | xargs -0 cat; } | sha256sum | cut -c 1-8)"
}

# A release as it is published: nothing in it was kept. Made twice, it must be the same to the byte.
part_release() {
  phase release-anew make_release "$local_dir/night-release"
  phase release-again make_release "$local_dir/night-release-again"
  diff "$local_dir/night-release/SHA256SUMS" "$local_dir/night-release-again/SHA256SUMS" || die 'two builds of one commit differ'
}
part_quick() { tests quick vitest quick; }
# The date is the only difference.
part_month-end() { TEST_NOW=2026-01-31T23:59:00.000Z tests month-end vitest quick; }
part_changed-map() { tests changed-map npm run --silent test:map; }
part_deep() {
  tests deep vitest deep
  tests load vitest load
}
part_docker() {
  keep_debian
  make_control_plane_image
  in_sandbox with_docker docker_rounds 5
}
docker_rounds() { # ROUNDS
  for _ in $(seq "$1"); do docker_files; done
}
part_vm() {
  keep_vm_runner
  keep_vm_disks
  in_sandbox vm_tests
}
part_machine() {
  keep_systemd
  phase release make_release "$test_release" --kept
  in_sandbox machine_tests systemd machine
}
part_services() {
  keep_services
  phase release make_release "$test_release" --kept
  in_sandbox machine_tests services services
}
# In the browser that people use, with pictures of the console's pages for people to look at.
part_browser() {
  require_commands chromium=chromium
  export TEST_CHROMIUM=chromium TEST_SCREENSHOTS=$local_dir/screenshots
  rm -rf "$TEST_SCREENSHOTS"
  tests browser vitest browser
  tests sweeps vitest sweeps
}
part_alerts() {
  keep_prometheus
  export GPURENT_TEST_PROMETHEUS=$kept
  in_sandbox alert_tests
}
alert_tests() {
  start_empty_dockerd docker-1
  make_sample_image
  tests alerts vitest alerts
  stop_dockerd
}
# The tests with real deadlines, beside programs that compute all the time.
part_busy() {
  local each busy=()
  keep_debian
  make_control_plane_image
  require_commands chromium-headless-shell=chromium-headless-shell
  for each in 1 2; do
    timeout 14400 sh -c 'while :; do :; done' &
    busy+=($!)
  done
  in_sandbox with_docker docker_rounds $busy_rounds
  for _ in $(seq $busy_rounds); do tests browser vitest browser; done
  kill "${busy[@]}"
}
part_nodes() {
  local major
  for major in "${nodes[@]}"; do tests "quick-node-$major" on_node "$major" quick_tests_again; done
  compile_packages
  in_sandbox quickstarts
}
# on_node MAJOR COMMAND...
on_node() {
  local major=$1
  shift
  if [ "$(node -p 'process.versions.node.split(".")[0]')" = "$major" ]; then
    "$@"
  else
    fetch_node "$major"
    PATH=$fetched/bin:$PATH "$@"
  fi
}
quick_tests_again() {
  compile_packages
  npx --no-install vitest run --project quick
}
quickstarts() {
  local major
  start_dockerd docker-1
  for major in "${nodes[@]}"; do tests "quickstart-node-$major" on_node "$major" scripts/quickstart --once; done
  stop_dockerd
}
# In blocks, each a phase of its own.
part_simulation() {
  local first
  for first in $(seq 1 1000 19001); do
    tests "simulation-$first" simulate --seeds "$first-$((first + 999))" --steps 1000
  done
}
part_steps() { tests steps step_test --whole --reads; }
part_mutants() { tests mutants npm run --silent mutants; }
part_mutation() {
  tests mutation-domain npm run --silent mutation -- domain
  tests mutation-money npm run --silent mutation -- money
}

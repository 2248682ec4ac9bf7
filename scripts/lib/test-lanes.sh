# The lanes of the tests: one computes, one fetches and builds images, and others run the tests on Docker and in a browser.
# shellcheck shell=bash

source scripts/lib/setup.sh
source scripts/lib/processor.sh
source scripts/lib/docker.sh
source scripts/lib/artifacts.sh
source scripts/lib/test-images.sh
source scripts/lib/phases.sh
source scripts/lib/results.sh

vm_runner=localhost/gpurent/vm-runner:1
test_release=$local_dir/test-release

# vitest PROJECT [OPTION...]: writes its report beside the log of its phase.
vitest() { npx --no-install vitest run --project "$1" --reporter=default --reporter=json --outputFile.json="$report" "${@:2}"; }

# halves COMMAND...: runs both halves of a command with --part in parallel, each on one core.
halves() {
  "$@" --part 1/2 &
  local first=$!
  "$@" --part 2/2
  wait "$first"
}
simulate() { halves npm run --silent simulate -- "$@"; }
step_test() { halves npm run --silent simulate-steps -- "$@"; }

# Checks the sources while the SQLite driver is compiled, which the served document needs.
check_built() {
  npm run --silent check:sources
  after program
  npm run --silent check:openapi
}

# Builds, runs the quick tests, then computes in the gaps of the tests on Docker.
computing_lane() { # [MODE]
  local mode=${1:-}
  build_and_check
  case "$mode" in
  --quick) computing_tests simulation simulate --seeds chosen:10 --steps 200 ;;
  *)
    compute_in_gaps
    computing_tests simulation simulate --seeds chosen:8 --steps 500
    computing_tests steps step_test --every 3
    computing_tests deep vitest deep
    ;;
  esac
}
# Reaches `program` as soon as programs can run, and `quick-ended` after the quick tests.
build_and_check() {
  phase packages install_kept_packages
  phase compile compile_kept_packages &
  local compiling=$! checking
  phase build npm run --silent build
  tests check check_built &
  checking=$!
  wait "$compiling"
  calibrate
  reached program
  computing_tests quick vitest quick
  reached quick-ended
  wait "$checking"
}
# The same as `tests`. The speed of a machine that is shared changes while they run: it is measured after each of them.
computing_tests() {
  tests "$@"
  calibrate
}
calibrate() { phase calibrate node dist/scripts/suite/calibrate.js "$phases_dir/factors"; }

# Fetches everything that needs the network, which sandboxes do not have.
making_lane() {
  phase tools make_tools
  phase image-debian keep_debian
  phase chromium require_commands chromium-headless-shell=chromium-headless-shell
  if is_to_run vm vm-rent; then
    phase image-vm-runner keep_vm_runner
    phase image-vm-disks keep_vm_disks
  fi
  after program
  phase image-control-plane make_control_plane_image
  if is_to_run machine; then
    phase image-systemd keep_systemd
    phase release make_release "$test_release" --kept
  fi
}
make_tools() {
  make_kept_guest_tools
  keep_litestream
  keep_caddy
  require_commands ip=iproute2 docker-compose=docker-compose crun=crun minisign=minisign mkfs.btrfs=btrfs-progs rsync=rsync tmux=tmux docker-registry=docker-registry htpasswd=apache2-utils
  require_dockerd
  require_image_makers
}

# After the quick tests: some of both have real deadlines, and would pass those of each other. Only what has none computes beside
# them. Reaches `docker-ended` after the tests on Docker.
docker_lane() {
  after program image-debian image-control-plane chromium quick-ended
  in_sandbox docker_tests
  reached docker-ended
  machines
  # It says how long something takes.
  tests load vitest load
}
# start_empty_dockerd NAME: a run that was killed has left containers there, which tests would count.
start_empty_dockerd() {
  start_dockerd "$1"
  docker ps --all --quiet | xargs --no-run-if-empty docker rm --force >/dev/null
}
# with_docker COMMAND...: runs it with a Docker Engine that has the images of the tests on containers.
with_docker() {
  start_empty_dockerd docker-1
  make_sample_image
  keep_debian && give_image gpurent/debian:1 "$kept"
  "$@"
  stop_dockerd
}
docker_tests() { with_docker docker_files; }
# Three files at a time, then those that all others on the engine would notice.
docker_files() {
  tests docker vitest_on_docker docker
  tests docker-alone vitest_on_docker docker-alone
}
vitest_on_docker() {
  keep_litestream
  export TEST_LITESTREAM=$kept
  keep_caddy
  export TEST_CADDY=$kept TEST_CONTROL_PLANE_IMAGE=$control_plane_image
  vitest "$@"
}

# For scripts/record-cli.
recording_test() { # FILE
  export TEST_RECORDING=$1
  with_docker phase recording npx --no-install vitest run --project docker test/e2e/command-line.test.ts
}

machines() {
  if is_to_run vm vm-rent; then
    after program image-vm-disks
    in_sandbox vm_tests
  fi
  if is_to_run machine; then
    after release
    in_sandbox machine_tests systemd machine
  fi
}
give_vm_runner() {
  local sources
  sources=$(cat agent/vm-runner/runner scripts/build-vm-runner | sha256sum | cut -c 1-16)
  if [ "$(docker image inspect --format '{{index .Config.Labels "gpurent.sources"}}' "$vm_runner" 2>/dev/null)" = "$sources" ]; then return; fi
  scripts/build-vm-runner --from "$1" "$vm_runner"
}
vm_tests() {
  start_empty_dockerd docker-2
  make_sample_image
  keep_vm_runner && give_vm_runner "$kept"
  keep_vm_disks
  give_image gpurent/vm-debian:1 "$kept/debian"
  give_image gpurent/vm-uefi:1 "$kept/uefi"
  keepable_tests vm vitest vm test/docker/vm.test.ts
  keepable_tests vm-rent vitest vm test/e2e/vm.test.ts
  stop_dockerd
}
machine_tests() { # IMAGE PROJECT
  start_empty_dockerd docker-2
  make_sample_image
  "keep_$1" && give_image "gpurent/$1:1" "$kept"
  export GPURENT_TEST_RELEASE=$test_release
  keepable_tests "$2" vitest "$2"
  stop_dockerd
}

# Beside emulated machines, which take one processor and are patient.
browser_lane() {
  after program chromium docker-ended
  tests browser vitest browser
  keepable_tests sweeps vitest sweeps
}

# judge_run [MODE] [RECORD]: after all lanes. Gives red files of Docker and browser a second run alone, prints the times, and the
# output of what has failed. Fails if something is red.
judge_run() {
  local suite=dist/scripts/suite total=0
  if [ -e $suite/second-run.js ]; then
    if [ -n "$lanes_failed" ]; then run_red_files_again; fi
    node $suite/second-run.js check "$phases_dir" || lanes_failed=1
    if [ -n "${processor_group:-}" ]; then total=$(used_by .); fi
    node $suite/report.js "$phases_dir" "${1#--}" "$SECONDS" "$total" "${2:-}" || lanes_failed=1
  fi
  if [ -n "$lanes_failed" ]; then
    say_failures
    say "failed: $(failed_phases | paste -sd' ')"
    return 1
  fi
}

run_red_files_again() {
  local red project
  red=$(node dist/scripts/suite/second-run.js list "$phases_dir") || return 0
  # A lane has ended outside of its phases: no second run says that it was chance.
  [ -n "$red" ] || return 0
  for project in $(cut -d' ' -f1 <<<"$red" | sort -u); do
    run_again "$project" $(awk -v project="$project" '$1 == project { print $2 }' <<<"$red")
  done
  if node dist/scripts/suite/second-run.js record "$phases_dir"; then lanes_failed=; fi
}
# run_again PROJECT FILE...: nothing runs beside them.
run_again() {
  say "red, once more alone: ${*:2}"
  case "$1" in
  docker*) in_sandbox with_docker tests "again-$1" vitest_on_docker "$1" --no-file-parallelism "${@:2}" ;;
  *) tests "again-$1" vitest "$1" --no-file-parallelism "${@:2}" ;;
  esac
}

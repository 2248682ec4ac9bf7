# The lanes of the tests: one computes, one fetches and builds images, and others run the tests on Docker.
# shellcheck shell=bash

source scripts/lib/setup.sh
source scripts/lib/docker.sh
source scripts/lib/test-images.sh
source scripts/lib/phases.sh

vm_runner=localhost/gpurent/vm-runner:1

# vitest PROJECT [OPTION...]: writes its report beside the log of its phase.
vitest() { npx --no-install vitest run --project "$1" --reporter=default --reporter=json --outputFile.json="$report" "${@:2}"; }

# The supported major versions of Node; the tests use the newest of each.
nodes=(20 22 24 26)
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
nodes_of_tests() {
  local major
  for major in "${nodes[@]}"; do phase "quick-node-$major" on_node "$major" quick_tests_again; done
  reached nodes
}

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

# Builds, then computes at a lower priority than the tests on Docker.
computing_lane() { # [MODE]
  local mode=${1:-}
  phase packages install_packages
  phase compile compile_packages &
  local compiling=$! checking
  phase build npm run --silent build
  # From here the tests on Docker have priority.
  renice -n 5 $BASHPID >/dev/null
  phase check check_built &
  checking=$!
  wait "$compiling"
  reached program
  phase quick vitest quick
  wait "$checking"
  if [ "$mode" = --nightly ]; then nodes_of_tests; fi
  case "$mode" in
  --quick) phase simulation simulate --seeds chosen:10 --steps 200 ;;
  --nightly) phase simulation simulate --seeds 1-20000 --steps 1000 ;;
  *) phase simulation simulate --seeds chosen --steps 500 ;;
  esac
  if [ "$mode" = --quick ]; then return; fi
  case "$mode" in
  --nightly) phase steps step_test --whole ;;
  *) phase steps step_test --every 6 ;;
  esac
  phase deep vitest deep
  phase load vitest load
  if [ "$mode" != --nightly ]; then return; fi
  phase mutants npm run --silent mutants
  phase mutation-domain npm run --silent mutation -- domain
  phase mutation-money npm run --silent mutation -- money
}

# Fetches everything that needs the network, which sandboxes do not have.
making_lane() { # [MODE]
  phase tools make_tools
  phase image-debian keep_debian
  phase chromium require_commands chromium-headless-shell=chromium-headless-shell
  # At night the browser tests run in the browser that people use.
  if [ "${1:-}" = --nightly ]; then require_commands chromium=chromium; fi
  phase image-vm-runner keep_vm_runner
  phase image-vm-disks keep_vm_disks
  phase image-systemd keep_systemd
  if [ "${1:-}" = --nightly ]; then phase prometheus keep_prometheus; fi
  after program
  phase release keep_release
  if [ "${1:-}" = --nightly ]; then phase image-services keep_services; fi
}
make_tools() {
  make_guest_tools
  require_commands ip=iproute2 crun=crun minisign=minisign mkfs.btrfs=btrfs-progs rsync=rsync tmux=tmux docker-registry=docker-registry htpasswd=apache2-utils
  require_dockerd
  require_image_makers
}

# One lane: two of them, each with an engine, made the kernel's work for networks and mounts slower than they were faster.
docker_lane() { # ROUNDS [MODE]
  after program image-debian chromium
  in_sandbox docker_tests "$1"
  if [ "${2:-}" != --nightly ]; then return; fi
  after prometheus
  in_sandbox alert_tests
  after nodes
  in_sandbox quickstarts
}
alert_tests() {
  keep_prometheus
  export GPURENT_TEST_PROMETHEUS=$kept
  phase alerts vitest alerts
}
quickstarts() {
  local major
  start_dockerd docker-1
  for major in "${nodes[@]}"; do phase "quickstart-node-$major" on_node "$major" scripts/quickstart --once; done
  stop_dockerd
}
# start_empty_dockerd NAME: a run that was killed has left containers there, which tests would count.
start_empty_dockerd() {
  start_dockerd "$1"
  docker ps --all --quiet | xargs --no-run-if-empty docker rm --force >/dev/null
}
docker_tests() { # ROUNDS
  start_empty_dockerd docker-1
  make_sample_image
  keep_debian && give_image gpurent/debian:1 "$kept"
  for _ in $(seq "$1"); do phase docker vitest docker; done
  stop_dockerd
}

# For scripts/record-cli.
recording_test() { # FILE
  start_empty_dockerd docker-1
  make_sample_image
  export TEST_RECORDING=$1
  phase recording npx --no-install vitest run --project docker test/e2e/command-line.test.ts
  stop_dockerd
}

machines_lane() { # ROUNDS [MODE]
  after program image-vm-disks
  in_sandbox vm_tests "$1"
  after release
  in_sandbox machine_tests systemd machine
  after chromium
  phase browser browser_tests "${2:-}"
  if [ "${2:-}" != --nightly ]; then return; fi
  after image-services
  in_sandbox machine_tests services services
}
browser_tests() { # [MODE]
  # They compute more than the tests on Docker, which have deadlines of hosts.
  renice -n 5 $BASHPID >/dev/null
  # Pictures of the console's pages, for people to look at.
  if [ "${1:-}" = --nightly ]; then
    export TEST_CHROMIUM=chromium TEST_SCREENSHOTS=$local_dir/screenshots
    rm -rf "$TEST_SCREENSHOTS"
  fi
  vitest browser
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
  for _ in $(seq "$1"); do phase vm vitest vm; done
  stop_dockerd
}
machine_tests() { # IMAGE PROJECT
  start_empty_dockerd docker-2
  "keep_$1" && give_image "gpurent/$1:1" "$kept"
  keep_release
  export GPURENT_TEST_RELEASE=$kept
  phase "$2" vitest "$2"
  stop_dockerd
}

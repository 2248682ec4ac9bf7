# Results that are kept: emulated machines and sweeps of all pages are not run by day where they have passed with the same inputs.
# The keys are broad: each has all that is part of what is tested, and the versions of what it runs on. Needs artifacts.sh.
# shellcheck shell=bash

# What can be left out.
keepable='vm vm-rent machine sweeps'

# inputs_of NAME: prints the files and folders that decide the result, beside those of all.
inputs_of() {
  echo package.json package-lock.json vitest.config.js tsconfig.base.json scripts shared proto test/harness test/rig test/images
  case "$1" in
  vm) echo agent test/suites test/docker/vm.test.ts ;;
  vm-rent) echo agent control-plane client test/suites test/e2e/vm.test.ts ;;
  # All that a release has but the console: no browser is on that machine.
  machine) echo agent control-plane client packaging docs templates README.md SECURITY.md LICENSE test/machine ;;
  sweeps) echo console control-plane client test/browser ;;
  esac
}

# inputs_key NAME: prints the hash of the inputs as they lie here, committed or not.
inputs_key() {
  # shellcheck disable=SC2046
  git ls-files -z --cached --others --exclude-standard -- $(inputs_of "$1") | sort -zu | xargs -0 sha256sum 2>/dev/null | sha256sum
}

# programs_key: prints a hash of the versions of what the tests run on.
programs_key() {
  {
    node --version
    uname -rm
    dpkg-query --show docker.io chromium-headless-shell iptables 2>/dev/null || true
  } | sha256sum
}

# result_file NAME INPUTS_KEY PROGRAMS_KEY: prints the file that says that it has passed.
result_file() { echo "$cache_dir/passed-$1-$(sha256sum <<<"$2 $3" | cut -c 1-16)"; }

# Sets `not_run` to the names whose results are kept, and says so.
find_kept_results() {
  local name file programs
  export not_run=
  drop_old_artifacts
  programs=$(programs_key)
  for name in $keepable; do
    # Files may change while the tests run.
    inputs_key "$name" >"$phases_dir/$name.inputs"
    file=$(result_file "$name" "$(cat "$phases_dir/$name.inputs")" "$programs")
    if [ -e "$file" ]; then
      not_run+=" $name"
      echo "$name: passed with the same inputs $(cat "$file")" >>"$phases_dir/not-run"
    fi
  done
}

# is_to_run NAME...: succeeds if one of them is not kept.
is_to_run() {
  local name
  for name in "$@"; do if [[ " ${not_run:-} " != *" $name "* ]]; then return 0; fi; done
  return 1
}

# keepable_tests NAME COMMAND...: tests whose result is kept if they pass.
keepable_tests() {
  if ! is_to_run "$1"; then return; fi
  tests "$@"
  if [ -e "$phases_dir/$1.reached" ]; then
    echo "at $(git rev-parse --short HEAD) on $(date -u +%F)" >"$(result_file "$1" "$(cat "$phases_dir/$1.inputs")" "$(programs_key)")"
  fi
}

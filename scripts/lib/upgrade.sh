# The steps of scripts/upgrade-agent. They need install.sh.
# shellcheck shell=bash

# Only root can change what is here; the unit of the agent cannot write to it.
work=/var/lib/gpurent-agent-upgrade
lock=/run/gpurent-agent-upgrade.lock
# How large a file of a release can be.
most_mib=1024

# The version of the release that waits, and its tarball.
version='' tarball=''
# The version of this release, which is installed.
installed=''
# How often to ask, every two seconds, whether an agent runs.
tries=30
# Whether the new release may have changed this host.
phase=checking
# Why the upgrade has failed.
reason='the upgrade was interrupted'

# upgrade_agent: checks the release that the agent has loaded, installs it, and comes back to this one if that fails.
upgrade_agent() {
  state=$(state_dir)
  find_node || die 'no Node runs this release'
  [ "$(readlink -f "$prefix/agent")" = "$release" ] || die "run the script of the installed release: $prefix/agent/scripts/upgrade-agent"
  exec 9>"$lock"
  flock --nonblock 9 || die 'another upgrade is under way'
  installed=$(version_of "$release")
  trap 'finish $?' EXIT
  trap 'exit 143' TERM INT HUP
  take_release "$state/upgrade/ready"
  if [ -z "$version" ]; then return; fi
  if [ "$version" = "$installed" ]; then
    say "$version is installed already"
    return
  fi
  check_release
  install_new "$work/${tarball%.tar.gz}"
  keep_two_releases
  say "this host has been upgraded from $installed to $version; to go back, set GPURENT_AGENT_UPGRADES=off in $config_dir/agent.conf and run $release/scripts/install-agent"
}

version_of() { "$node" -p "require('$1/dist/build.json').version"; }

# refuse REASON: ends the upgrade.
refuse() {
  reason=$*
  die "the agent is not upgraded${version:+ to $version}: $reason"
}

# take_release FOLDER: copies the files of a release, so that nobody can change them after the check, and removes the folder in any case,
# or its unit would start this script again and again.
take_release() {
  local folder=$1 file files=() fault=''
  rm -rf "$work"
  (umask 077 && mkdir -p "$work")
  if [ -d "$folder" ] && [ ! -L "$folder" ]; then
    for file in "$folder"/gpurent-*; do files+=("${file##*/}"); done
    if [ ${#files[@]} = 1 ] && [[ "${files[0]}" =~ ^gpurent-([0-9][0-9A-Za-z.+-]{0,63})-linux-x64\.tar\.gz$ ]]; then
      version=${BASH_REMATCH[1]} tarball=${files[0]}
      for file in SHA256SUMS SHA256SUMS.minisig "$tarball"; do
        if [ -z "$fault" ]; then copy_file "$folder" "$file" || fault="$file cannot be copied"; fi
      done
    else
      fault="$folder has no release for hosts, or several"
    fi
  else
    say "no release waits in $folder"
  fi
  rm -rf "$folder"
  [ -z "$fault" ] || refuse "$fault"
}

# copy_file FOLDER NAME: copies a plain file, and never what a link leads to. A copy that is cut off does not pass the check.
copy_file() {
  local file=$1/$2
  [ -f "$file" ] && [ ! -L "$file" ] || return 1
  has_room "$work" $(($(size_in_mib "$file") + 64)) || return 1
  dd if="$file" of="$work/$2" iflag=nofollow,nonblock bs=1M count="$most_mib" status=none
}

size_in_mib() { echo $(($(stat --format %s "$1") / 1048576 + 1)); }

# has_room FOLDER MIB: succeeds if the file system of a folder has that much free.
has_room() {
  local free
  free=$(df --output=avail --block-size=1M "$1" | tail -n 1)
  [ "$free" -ge "$2" ] || {
    say "$1 has $free MiB free, and the upgrade needs $2 MiB"
    return 1
  }
}

# check_release: refuses what the owner of this host does not allow, what is not signed, and what is not newer than this release.
check_release() {
  local said
  [ "$(setting_of agent.conf GPURENT_AGENT_UPGRADES)" = signed ] ||
    refuse "$config_dir/agent.conf does not have GPURENT_AGENT_UPGRADES=signed"
  # Without the variables of this shell. The installed program checks the new one.
  said=$(env -i PATH="$PATH" "$node" "$release/dist/bundle/agent.js" verify --key "$config_dir/release.pub" \
    --newer-than "$installed" "$work/$tarball" 2>&1) || refuse "$(tail -n 1 <<<"$said")"
  say "$said"
}

# install_new FOLDER: unpacks the release into a folder, installs it and waits for its agent.
install_new() {
  local new=$1 needed
  # Unpacked, a release is three to four times as large.
  needed=$((5 * $(size_in_mib "$work/$tarball") + 128))
  if ! has_room "$work" "$needed" || ! has_room "$prefix" "$needed"; then refuse 'the disk of this host has too little room'; fi
  begin_step "unpacking $tarball"
  tar --no-same-owner -C "$work" -xzf "$work/$tarball" || refuse "$tarball cannot be unpacked"
  end_step
  [ "$(version_of "$new")" = "$version" ] || refuse "$tarball has another release than its name says"
  phase=installing
  run_installer "$new" 2>&1 | tee "$work/install.log" >&2 ||
    refuse "scripts/install-agent has failed: $(tail -n 3 "$work/install.log" | tr '\n' ' ')"
  wait_for_agent "$version" || refuse 'its agent was installed, but does not answer'
  phase=installed
}

# run_installer RELEASE: without the lock, which programs that it starts could keep.
run_installer() { (umask 022 && cd / && "$1/scripts/install-agent") 9>&- </dev/null; }

# wait_for_agent VERSION: waits until an agent of a version runs.
wait_for_agent() {
  local try
  for ((try = 0; try < tries; try++)); do
    # With a status, because finish is a trap, in which return has that of the command before it.
    if [ "$(running_version)" = "$1" ]; then return 0; fi
    sleep 2
  done
  return 1
}

# Prints the version of the agent that runs.
running_version() {
  gpurent-agent status --json 2>/dev/null | "$node" -p 'JSON.parse(require("fs").readFileSync(0, "utf8")).version' 2>/dev/null || true
}

# keep_two_releases: removes releases that nothing uses, but for the one before. Where the machine's own Node runs the programs, nothing
# tells which release a process is from, so all stay.
keep_two_releases() {
  if own_node_runs >/dev/null && "$prefix/agent/node/bin/node" --version >/dev/null 2>&1; then
    remove_unused_releases "${release##*/}"
  fi
}

# finish STATUS: whatever has happened, leaves a host with an agent, and nothing of a failed upgrade but its reason.
finish() {
  local status=$1
  trap - EXIT
  # Not ignored: what this script starts would ignore it, too.
  trap : TERM INT HUP
  set +e
  end_step
  if [ "$status" != 0 ]; then
    # First, because the agent reads it once it runs again.
    note_failure
    if [ "$phase" = installing ]; then roll_back; fi
  fi
  rm -rf "$work"
  exit "$status"
}

# roll_back: installs this release again.
roll_back() {
  say "installing $installed again"
  if run_installer "$release" && wait_for_agent "$installed"; then
    say "$installed runs again"
    remove_failed
  else
    reason="$reason; $installed could not be installed again: see \"journalctl -u gpurent-agent-upgrade\" on the host"
    say "$reason"
    note_failure
  fi
}

# remove_failed: removes the release that has failed, unless another program uses it.
remove_failed() {
  local each names=()
  for each in "$prefix"/*; do if [ "${each##*/}" != "$version" ]; then names+=("${each##*/}"); fi; done
  rm -rf "$prefix/$version.new"
  remove_unused_releases "${names[@]}"
}

# note_failure: tells the agent why the upgrade has failed.
note_failure() {
  local folder=$state/upgrade
  if [ -z "$version" ] || [ -L "$folder" ]; then return 0; fi
  mkdir -p "$folder"
  "$node" -e 'const [version, reason] = process.argv.slice(1); console.log(JSON.stringify({ version, reason: reason.slice(0, 500), at: Date.now() }))' \
    -- "$version" "$reason" >"$work/failed.json" && chmod 600 "$work/failed.json" && mv -fT "$work/failed.json" "$folder/failed.json"
}

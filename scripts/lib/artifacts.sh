# What tests make once and keep: the SQLite driver, guest tools, images. It lies outside the checkout, named by the hash of its
# inputs, so that each checkout of this machine has it. Needs setup.sh.
# shellcheck shell=bash

cache_dir=${GPURENT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/gpurent}

# keep NAME FUNCTION SOURCE...: sets `kept` to the path that FUNCTION PATH makes, a file or a folder. Makes it again if the function
# or a source has changed, if the kept one is a week old (it has Debian's packages), or if it is not whole. `was_kept` is empty then.
keep() {
  local name=$1 make=$2 hash path
  shift 2
  was_kept=1
  hash=$({ declare -f "$make" && uname -m && cat "$@"; } </dev/null | sha256sum | cut -c 1-16)
  path=$cache_dir/$name-$hash
  drop_old_artifacts
  if ! is_whole "$path"; then
    say "making $name"
    # Two runs may make it beside each other.
    local new=$path.$BASHPID
    rm -rf "$new"
    "$make" "$new"
    rm -rf "$path"
    mv -T "$new" "$path"
    sum_of "$path" >"$path.sum"
    was_kept=
  fi
  kept=$path
}

# is_whole PATH: succeeds if it is what was made.
is_whole() { [ -e "$1" ] && [ -e "$1.sum" ] && [ "$(sum_of "$1")" = "$(cat "$1.sum")" ]; }

# sum_of PATH: prints a hash of a file, or of all that is in a folder.
sum_of() {
  if [ -d "$1" ]; then
    tar -C "$1" --sort=name -cf - . | sha256sum
  else
    sha256sum <"$1"
  fi
}

drop_old_artifacts() {
  mkdir -p "$cache_dir"
  find "$cache_dir" -mindepth 1 -maxdepth 1 -mtime +6 -name '*-????????????????*' -exec rm -rf {} + 2>/dev/null || true
}

# The same as install_packages and compile_packages of setup.sh, from what is kept.
install_kept_packages() {
  if packages_are_installed; then return; fi
  keep packages make_packages package.json package-lock.json
  if [ -z "$was_kept" ]; then return; fi
  mkdir -p "$local_dir"
  touch "$local_dir/uncompiled"
  rm -rf node_modules
  tar -xf "$kept"
  # It must be newer than the list of packages.
  touch node_modules/.package-lock.json
}
make_packages() { # FILE
  install_packages
  tar -cf "$1" node_modules
}

compile_kept_packages() {
  local sqlite=node_modules/better-sqlite3
  if [ -e "$local_dir/uncompiled" ]; then
    keep driver make_driver $sqlite/package.json <(node -p 'process.versions.modules + process.platform')
    mkdir -p $sqlite/build/Release
    cp "$kept" $sqlite/build/Release/better_sqlite3.node
    # For scripts/release.
    touch "$sqlite/build/Release/kept"
    rm "$local_dir/uncompiled"
  fi
  compile_packages
}
make_driver() { # FILE
  rebuild_driver
  cp node_modules/better-sqlite3/build/Release/better_sqlite3.node "$1"
}

make_kept_guest_tools() {
  keep guest-tools make_guest_tools_in scripts/build-guest-tools agent/guest/init
  mkdir -p "$guest_tools"
  cp -a "$kept/." "$guest_tools/"
  # They must be newer than what they are made of.
  touch "$guest_tools/init"
}
make_guest_tools_in() { scripts/build-guest-tools "$1"; } # FOLDER

litestream_version=1.0.1
litestream_sum=bbd8b9baa5bd9ae35318bececace384247b71fed4269a3e3cb8a8ac3f6c957bb

# keep_litestream: sets `kept` to the program Litestream, for the processor of this machine.
keep_litestream() { keep litestream make_litestream <(echo "$litestream_version $litestream_sum"); }
make_litestream() { # FILE
  local folder=$1.package
  mkdir -p "$folder"
  (cd "$folder" && npm pack --silent "@flydotio/litestream-linux-x64@$litestream_version" >/dev/null && tar -xzf ./*.tgz) ||
    die 'Litestream cannot be fetched from the npm registry'
  echo "$litestream_sum  $folder/package/litestream" | sha256sum --check --status || die 'what the npm registry has is not Litestream'
  install -m 755 "$folder/package/litestream" "$1"
  rm -rf "$folder"
}

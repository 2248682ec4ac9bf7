# The parts of the image of the control plane, and of releases, that need registries and a compiler. Needs setup.sh and artifacts.sh.
# image.lock has their versions and checksums. `image_arch` is amd64 or arm64.
# shellcheck shell=bash

image_lock=$root/scripts/lib/image.lock

keep_image_base() { keep "image-base-$image_arch" make_image_base "$image_lock" "$root/scripts/lib/image.sh"; }
keep_own_node() { keep own-node make_own_node "$image_lock"; }
keep_image_driver() {
  keep "image-driver-$image_arch" make_image_driver "$image_lock" "$root/scripts/lib/image.sh" node_modules/better-sqlite3/package.json
}

# locked KIND: prints package, version and checksum of each of the locked packages.
locked() { awk -v kind="$1" -v arch="$image_arch" '$1 == kind && $2 == arch { print $3, $4, $5 }' "$image_lock"; }

check_sum() { # FILE SUM
  echo "$2  $1" | sha256sum --check --status || die "$(basename "$1") is not what scripts/lib/image.lock says"
}

# fetch_locked_node FOLDER: fetches Node for the processor of the image, with its headers.
fetch_locked_node() {
  local package version sum file
  read -r package version sum < <(locked npm)
  mkdir -p "$1"
  file=$1/$(cd "$1" && npm pack --silent "$package@$version" | tail -n 1) || die "$package $version cannot be fetched from the npm registry"
  check_sum "$file" "$sum"
  tar -C "$1" --strip-components 1 -xzf "$file"
  rm "$file"
}

# make_own_node FOLDER: Node for a release, its license, and its name and version, as `NAME@VERSION SHA256-OF-THE-PACKAGE`.
make_own_node() {
  local work package version sum
  read -r package version sum < <(locked npm)
  work=$(mktemp -d)
  fetch_locked_node "$work"
  mkdir -p "$1"
  cp "$work/bin/node" "$work/LICENSE" "$1/"
  echo "$package@$version $sum" >"$1/package"
  rm -r "$work"
}

# fetch_locked_packages FOLDER: fetches the packages of Debian, also those of another processor, by this machine's own sources.
fetch_locked_packages() {
  local apt=$1/apt package version sum each options
  command -v apt-get >/dev/null || die 'the image is made of packages of Debian: run this on Debian 12'
  mkdir -p "$apt"/{state/lists/partial,cache/archives/partial,sources}
  # Packages of others are of no use here.
  for each in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    if grep -qs debian-archive-keyring "$each"; then cp "$each" "$apt/sources/"; fi
  done
  options=(-qq -o "APT::Architecture=$image_arch" -o "APT::Architectures=$image_arch" -o "Dir::State=$apt/state" -o Dir::State::status=/dev/null
    -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=)
  if [ -n "$(ls "$apt/sources")" ]; then options+=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$apt/sources"); fi
  apt-get "${options[@]}" update >&2 </dev/null || die 'the lists of Debian’s packages cannot be fetched'
  while read -r package version sum; do
    if (cd "$1" && apt-get "${options[@]}" download "$package=$version" >&2 </dev/null); then
      mv "$1/$package"_*.deb "$1/$package.deb"
      check_sum "$1/$package.deb" "$sum"
    else
      # A test of other sources must not fail because Debian has a newer version.
      [ -n "${may_be_kept:-}" ] || die "Debian does not have $package $version now: write its newer version into scripts/lib/image.lock"
      say "Debian has a newer $package than scripts/lib/image.lock"
      (cd "$1" && apt-get "${options[@]}" download "$package" >&2 </dev/null) || die "Debian's package $package cannot be fetched"
      mv "$1/$package"_*.deb "$1/$package.deb"
    fi
  done < <(locked debian)
  rm -r "$apt"
}

# make_image_base FOLDER: Node, the libraries that it needs, and their licenses. No shell, no other program.
make_image_base() {
  local work package version sum each triplet loader
  case $image_arch in
  amd64) triplet=x86_64-linux-gnu loader=lib64/ld-linux-x86-64.so.2 ;;
  arm64) triplet=aarch64-linux-gnu loader=lib/ld-linux-aarch64.so.1 ;;
  esac
  work=$(mktemp -d)
  fetch_locked_packages "$work"
  fetch_locked_node "$work/node"
  mkdir -p "$1"/{etc,usr/lib/$triplet,usr/local/bin,usr/share/doc/node,var/lib/dpkg/status.d,lib64,proc,sys,dev,tmp}
  while read -r package version sum; do
    dpkg-deb -x "$work/$package.deb" "$work/tree"
    # Scanners read here which packages an image has.
    dpkg-deb -f "$work/$package.deb" >"$1/var/lib/dpkg/status.d/$package"
  done < <(locked debian)
  for each in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libgcc_s.so.1 libstdc++.so.6 libatomic.so.1 "$(basename "$loader")"; do
    cp -L "$(find "$work/tree" -path "*/$triplet/$each" | head -n 1)" "$1/usr/lib/$triplet/$each"
  done
  ln -s usr/lib "$1/lib"
  ln -s "/usr/lib/$triplet/$(basename "$loader")" "$1/$loader"
  (cd "$work/tree" && find usr/share/doc -name copyright -exec cp --parents {} "$1/" \;)
  cp "$work/node/bin/node" "$1/usr/local/bin/node"
  cp "$work/node/LICENSE" "$1/usr/share/doc/node/copyright"
  printf 'root:x:0:0::/:/nonexistent\ngpurent:x:65532:65532::/var/lib/gpurent:/nonexistent\n' >"$1/etc/passwd"
  printf 'root:x:0:\ngpurent:x:65532:\n' >"$1/etc/group"
  # Without it, names of /etc/hosts would be unknown.
  echo 'hosts: files dns' >"$1/etc/nsswitch.conf"
  rm -r "$work"
}

# make_image_driver FILE: compiles the SQLite driver for the Node and the processor of the image.
make_image_driver() {
  local work prefix= cpu
  case $image_arch in amd64) cpu=x64 ;; arm64) cpu=arm64 ;; esac
  if [ "$image_arch" != "$(dpkg --print-architecture)" ]; then
    case $image_arch in amd64) prefix=x86_64-linux-gnu- ;; arm64) prefix=aarch64-linux-gnu- ;; esac
    require_commands "${prefix}g++=g++-$(tr _ - <<<"${prefix%-}")"
  fi
  work=$(mktemp -d)
  fetch_locked_node "$work/node"
  tar -C node_modules -cf - --exclude build --exclude lib/binding better-sqlite3 | tar -C "$work" -xf -
  (
    cd "$work/better-sqlite3" &&
      CC=${prefix}gcc CXX=${prefix}g++ AR=${prefix}ar LINK=${prefix}g++ npm_config_arch=$cpu npm_config_nodedir=$work/node \
        npm_config_build_from_source=true npm run --silent install
  ) >"$local_dir/compile-image.log" 2>&1 </dev/null || die "$(tail -n 20 "$local_dir/compile-image.log")"
  "${prefix}strip" --strip-unneeded -o "$1" "$work/better-sqlite3/build/Release/better_sqlite3.node"
  rm -rf "$work"
}

# The images of the Docker tests, built without Docker. Needs setup.sh and artifacts.sh.
# shellcheck shell=bash

require_image_makers() {
  require_commands mmdebstrap=mmdebstrap sfdisk=fdisk mkfs.vfat=dosfstools mcopy=mtools cpio=cpio syslinux=syslinux \
    qemu-img=qemu-utils
  [ -e /usr/lib/syslinux/mbr/mbr.bin ] || apt_install 'syslinux is needed' syslinux-common
}

make_base() {
  local tree
  tree=$(mktemp -d)
  # With the lists of packages, which `debian_with` installs from.
  env -u TMPDIR mmdebstrap --variant=minbase --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include=usr-is-merged \
    --skip=cleanup/apt bookworm "$tree" >"$local_dir/mmdebstrap.log" 2>&1 ||
    die "mmdebstrap failed; see $local_dir/mmdebstrap.log"
  # No service must start in it, and its files need not survive a power cut.
  printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
  chmod 755 "$tree/usr/sbin/policy-rc.d"
  echo force-unsafe-io >"$tree/etc/dpkg/dpkg.cfg.d/gpurent"
  tar -C "$tree" -cf "$1" .
  remove_tree "$tree"
}

# debian_with PACKAGE...: sets `tree` to a folder with a Debian that has these packages.
debian_with() {
  keep base make_base
  tree=$(mktemp -d)
  tar -C "$tree" -xf "$kept"
  # Kernels come without an initrd: each is made once, where it is needed.
  chroot "$tree" env -u TMPDIR INITRD=No DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" \
    >"$local_dir/apt-in-tree.log" 2>&1 </dev/null || die "apt-get install $* failed; see $local_dir/apt-in-tree.log"
  rm -rf "$tree"/usr/sbin/policy-rc.d "$tree"/etc/dpkg/dpkg.cfg.d/gpurent "$tree"/var/{cache/apt/archives,lib/apt/lists}
}

archive_tree() {
  tar -C "$tree" -cf "$1" .
  remove_tree "$tree"
}

# A Debian with Python, like many renters' images, with an account that is not root and a setuid program.
make_debian() {
  debian_with python3
  chroot "$tree" useradd --create-home --shell /bin/bash worker
  cp "$tree/bin/cat" "$tree/usr/local/bin/rootcat"
  chmod 4755 "$tree/usr/local/bin/rootcat"
  cp "$root/test/images/app.py" "$tree/srv/app.py"
  archive_tree "$1"
}

# A Debian with systemd and Docker, like the machines on which releases are installed. The Node that runs here is not on its PATH.
make_systemd() {
  debian_with systemd systemd-sysv dbus docker.io iptables iproute2 procps openssh-client ca-certificates curl libatomic1
  install -D "$(readlink -f "$(command -v node)")" "$tree/opt/its-node/node"
  archive_tree "$1"
}

# The same machine with the other programs of the guides: proxies, Prometheus, firewalls. Both proxies use the same ports, so none
# starts by itself.
make_services() {
  debian_with systemd systemd-sysv dbus docker.io iptables iproute2 procps openssh-client ca-certificates curl libatomic1 \
    nginx caddy prometheus nftables ufw
  install -D "$(readlink -f "$(command -v node)")" "$tree/opt/its-node/node"
  chroot "$tree" systemctl disable nginx caddy prometheus
  archive_tree "$1"
}

# A folder with two bootable disks.
make_vm_disks() {
  debian_with systemd-sysv dbus udev iproute2 linux-image-cloud-amd64 initramfs-tools openssh-server cloud-init netplan.io \
    cloud-guest-utils e2fsprogs sudo systemd-boot-efi
  mkdir "$1"
  "$root/test/rig/make-vm-disks" "$tree" "$guest_tools/bin/busybox" "$1"
  remove_tree "$tree"
}

# A folder with Prometheus and promtool, which need no other files of Debian.
make_prometheus() {
  debian_with prometheus
  mkdir "$1"
  cp "$tree/usr/bin/prometheus" "$tree/usr/bin/promtool" "$1"
  remove_tree "$tree"
}

# The program Caddy, which needs no other file.
make_caddy() { # FILE
  local work
  work=$(mktemp -d)
  (cd "$work" && apt-get -qq -o APT::Sandbox::User= download caddy && dpkg-deb -x caddy_*.deb tree) >&2 </dev/null ||
    die 'Debian’s package caddy cannot be fetched'
  cp "$work/tree/usr/bin/caddy" "$1"
  rm -r "$work"
}

# The image of the control plane, for this machine's processor. Its compiled parts are kept; the program in it is of these sources.
control_plane_image=$local_dir/test-image/control-plane.tar
make_control_plane_image() {
  local made
  rm -rf "$(dirname "$control_plane_image")"
  made=$("$root/scripts/build-image" --kept --arch "$(dpkg --print-architecture)" "$(dirname "$control_plane_image")")
  mv "$made" "$control_plane_image"
}

make_vm_runner() { "$root/scripts/build-vm-runner" --to "$1"; }
# A release that is signed with a key of the tests, and verified as a user would verify it.
# make_release FOLDER [--kept]
make_release() {
  local keys file
  rm -rf "$1"
  keys=$(mktemp -d)
  minisign -G -W -p "$keys/public" -s "$keys/secret" >/dev/null
  GPURENT_RELEASE_KEY=$keys/secret "$root/scripts/release" "${@:2}" "$1" >/dev/null
  minisign -V -q -p "$keys/public" -m "$1/SHA256SUMS"
  (cd "$1" && sha256sum --check --quiet SHA256SUMS)
  for file in "$1"/gpurent-*; do node "$root/dist/bundle/agent.js" verify --key "$keys/public" "$file" >/dev/null; done
  node "$root/dist/test/harness/check-sbom.js" "$1"/*.sbom.json "$1"/*.tar.gz
  rm -r "$keys"
}

# Each function prepares one image of the tests, or the files that one needs.
keep_debian() { keep debian make_debian "$root/test/images/app.py"; }
keep_vm_runner() { keep vm-runner make_vm_runner "$root/scripts/build-vm-runner" "$root/agent/vm-runner/runner"; }
keep_vm_disks() { keep vm-disks make_vm_disks "$root/test/rig/make-vm-disks"; }
keep_systemd() { keep systemd make_systemd "$(readlink -f "$(command -v node)")"; }
keep_caddy() { keep caddy make_caddy; }
keep_prometheus() { keep prometheus make_prometheus; }
keep_services() { keep services make_services "$(readlink -f "$(command -v node)")"; }
# give_image IMAGE ARCHIVE: imports the archive unless Docker has it already.
give_image() {
  if [ "$(docker image inspect --format '{{.Comment}}' "$1" 2>/dev/null)" = "$(basename "$2")" ]; then return; fi
  docker image rm --force "$1" >/dev/null 2>&1 || true
  docker import --message "$(basename "$2")" "$2" "$1" >/dev/null
}

/** What the script of a host has to know. */
export interface ScriptFacts {
  /** Where the control plane is, `https://HOST[:PORT]`. */
  url: string;
  /** The address that hosts dial, `HOST:PORT`. */
  grpcAddress: string;
  /** The file name of the release. */
  name: string;
  /** Its SHA-256 in hex. */
  sha256: string;
}

/** Makes a word of a text for a shell. */
const word = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** Returns the script that installs the agent on a host. Nothing runs before its last line has arrived. */
export function installScript({ url, grpcAddress, name, sha256 }: ScriptFacts): string {
  return `#!/bin/sh
# Installs the agent of gpurent on this machine, as a GPU host of ${url}.
set -eu
url=${word(url)}
control_plane=${word(grpcAddress)}
name=${word(name)}
sha256=${word(sha256)}
${BODY}`;
}

const BODY = String.raw`usage='usage: curl -fsSL '$url'/install | sh -s -- [--dry-run] [--sha256 SUM] [--token-file FILE] [--cacert FILE] [-- OPTION OF install-agent ...]
The enrollment token is read from the file, from GPURENT_ENROLLMENT_TOKEN, or asked for.'

say() { printf '%s\n' "$*" >&2; }
die() {
  say "gpurent: $*"
  exit 1
}

check_machine() {
  [ "$(uname -s)" = Linux ] || die "this is $(uname -s), but hosts run Linux"
  [ "$(uname -m)" = x86_64 ] || die "this machine is $(uname -m), but hosts are x86_64"
  kernel=$(uname -r)
  case "$kernel" in
  [0-4].* | 5.[0-9].* | 5.[0-9] | 5.[0-9]-* | [!0-9]*) die "this machine has Linux $kernel, but hosts have 5.10 or later" ;;
  esac
  [ -d /run/systemd/system ] || die 'this machine does not use systemd, which runs the agent'
  [ "$(id -u)" = 0 ] || die 'run this as root: put sudo before sh'
  for program in curl tar gzip sha256sum mktemp; do
    command -v "$program" >/dev/null || die "$program is missing: install it and run this again"
  done
}

describe() {
  say "This makes this machine a GPU host of $url:
  1. load $name from there, and compare its SHA-256 with $sha256
  2. install the agent in /opt/gpurent, with Docker and iptables where they are missing
  3. check the machine, then enroll it at $control_plane"
}

# Sets token.
read_token() {
  if [ -n "$token_file" ]; then
    token=$(tr -d '[:space:]' <"$token_file") || die "--token-file $token_file cannot be read"
  elif [ -n "$GPURENT_ENROLLMENT_TOKEN" ]; then
    token=$GPURENT_ENROLLMENT_TOKEN
  else
    { printf 'Enrollment token (it is not shown): ' >/dev/tty; } 2>/dev/null || die 'give the enrollment token by --token-file FILE or GPURENT_ENROLLMENT_TOKEN: there is no terminal to ask for it'
    trap 'stty echo </dev/tty; exit 130' INT TERM
    stty -echo </dev/tty
    read -r token </dev/tty || true
    stty echo </dev/tty
    trap - INT TERM
    printf '\n' >/dev/tty
  fi
  case "$token" in
  enr_*) case "$token" in *[!A-Za-z0-9_.-]*) token= ;; esac ;;
  *) token= ;;
  esac
  [ -n "$token" ] || die 'this is no enrollment token: it begins with enr_, and has letters, digits, dots and dashes'
}

# fetch FILE PATH [OPTION...]: loads what the control plane has there, and prints the status. The token stands in no list of processes.
fetch() {
  file=$1 route=$2
  shift 2
  printf 'header = "Authorization: Bearer %s"\n' "$token" |
    curl --config - --fail --silent --show-error --write-out '%{http_code}' --output "$work/$file" --connect-timeout 20 \
      --speed-limit 1024 --speed-time 60 ${'$'}{cacert:+--cacert "$cacert"} "$@" "$url/install/$route"
}

# Loads the release, and goes on where a connection was lost.
load() {
  tries=0
  while :; do
    status=$(fetch "$name" release --continue-at -) && case "$status" in 2*) return ;; esac
    case "$status" in
    401) die 'the control plane refuses the token: it is used up, expired or revoked. Ask the operator for a new one' ;;
    416) return ;;
    4*) die "the control plane does not give the release (status $status)" ;;
    esac
    tries=$((tries + 1))
    [ "$tries" -lt 10 ] || die "the release could not be loaded from $url; run this again"
    say 'the connection was lost or refused; trying again'
    sleep 6
  done
}

main() {
  dry= cacert= token_file= token= place=/opt/gpurent
  GPURENT_ENROLLMENT_TOKEN=${'$'}{GPURENT_ENROLLMENT_TOKEN-}
  while [ $# -gt 0 ]; do
    case "$1" in
    --dry-run) dry=1 ;;
    --sha256 | --cacert | --token-file)
      [ $# -gt 1 ] || die "$usage"
      case "$1" in
      --sha256) [ "$2" = "$sha256" ] || die "$url offers a release with the SHA-256 $sha256, and not the one that you were given: ask the operator" ;;
      --cacert) cacert=$2 ;;
      --token-file) token_file=$2 ;;
      esac
      shift
      ;;
    --)
      shift
      break
      ;;
    *) die "$usage" ;;
    esac
    shift
  done
  check_machine
  describe
  if [ -n "$dry" ]; then return; fi
  read_token
  umask 077
  # Not in /tmp, from which some machines run no programs.
  mkdir -p -m 755 "$place"
  work=$(mktemp -d "$place/loading.XXXXXX")
  trap 'rm -rf "$work"; rmdir "$place" 2>/dev/null || true' EXIT
  say "loading $name"
  load
  [ "$(sha256sum <"$work/$name" | cut -c 1-64)" = "$sha256" ] || die "what $url has sent is not the release that it announced: nothing was installed"
  # For the installer, where the owner of this machine has put the public key of releases.
  for each in SHA256SUMS SHA256SUMS.minisig; do
    case "$(fetch "$each" "$each" 2>/dev/null)" in 200) ;; *) rm -f "$work/$each" ;; esac
  done
  tar -xzf "$work/$name" -C "$work" --no-same-owner
  printf '%s\n' "$token" >"$work/token"
  # A control plane with its own authority has put the fingerprint of it into the token.
  case "$token" in *.*) cacert= ;; esac
  "$work/${'$'}{name%.tar.gz}/scripts/install-agent" --control-plane "$control_plane" --token-file "$work/token" ${'$'}{cacert:+--ca "$cacert"} "$@" </dev/null
}

main "$@"
`;

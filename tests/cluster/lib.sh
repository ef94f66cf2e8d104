# shellcheck shell=bash disable=SC2034,SC2046  # the variables are for those who source it; names are single words
# Sourced by the scripts beside it: where things are, and how processes are started, found, awaited and stopped.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${CLUSTER_HOME:-$HOME/.cache/local-cluster}      # what `install` built; kept
state=${CLUSTER_STATE:-/var/tmp/local-cluster}        # what runs now; gone after `down`
run=/run/${state##*/}                                 # containerd's sockets and mounts
bin=$home/bin
registry=127.0.0.1:5000

fail() { echo "${0##*/}: $*" >&2; exit 1; }

# One of up, down and the like at a time. The file lies beside the state, because `down` removes the state.
lock() { mkdir -p "${state%/*}"; exec 9>"$state.lock"; flock -w 600 9 || fail "another run has held $state.lock for ten minutes"; }

# ours PID: whether we started that process. A number left by a dead machine may by now be someone else's, so it must
# have been started in, or with a file of, the state folder.
ours() {
  [[ $(readlink "/proc/$1/cwd") == "$state"?( (deleted)) ]] || { tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF "$state/"; } 2>/dev/null
}
alive() { local pid; pid=$(cat "$state/pid/$1" 2>/dev/null) && [[ -n $pid ]] && ours "$pid"; } # NAME

# start NAME COMMAND...: in the state folder, with its own session, log and pid file, and none of our locks.
start() {
  local name=$1; shift; mkdir -p "$state"/{log,pid}
  (cd "$state" && exec setsid "$@" >"log/$name.log" 2>&1 </dev/null 8>&- 9>&-) & echo $! >"$state/pid/$name"
}

# stop NAME...: with all of its process group, also those that outlived its leader; at once, since what they would tidy
# up goes with the state folder anyway, and an API server that is asked politely waits for its watchers.
stop() {
  local name pid left
  for name; do
    [[ -s $state/pid/$name ]] || continue
    for _ in $(seq 200); do   # a zombie, which PID 1 may leave for a while, is nobody's any more
      left=''
      for pid in $(pgrep -g "$(cat "$state/pid/$name")" || true); do
        ours "$pid" && left=1 && kill -9 "$pid" 2>/dev/null || true
      done
      [[ $left ]] || break
      sleep .05
    done
    rm -f "$state/pid/$name"
  done
}

# await NAME COMMAND...: until the command succeeds, two minutes at most, or until the process of that name has ended.
await() {
  local name=$1 until=$((SECONDS + 120)) pid; shift
  until "$@" >/dev/null 2>&1; do
    pid=$(cat "$state/pid/$name" 2>/dev/null || echo self)
    if ((SECONDS > until)) || [[ ! -d /proc/$pid ]]; then
      tail -n 3 "$state/log/$name.log" >&2 2>/dev/null || true
      fail "$name did not start, see $state/log"
    fi
    sleep .1
  done
}

names() { (cd "$state/pid" 2>/dev/null && ls) | grep -E "$1" || true; } # PATTERN: names of what was started

# authority: in the present folder, an authority of its own (ca.crt) and a certificate by it for localhost, 127.0.0.1 and
# git.example.com.
authority() {
  {
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 30 -subj '/CN=larder test authority' \
      -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
    openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj '/CN=localhost'
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 30 -extfile <(
      printf 'subjectAltName = DNS:localhost, DNS:git.example.com, IP:127.0.0.1\nbasicConstraints = critical, CA:FALSE\nextendedKeyUsage = serverAuth\n')
  } >openssl.log 2>&1 || fail "openssl failed, see $PWD/openssl.log"
  chmod 600 ca.key server.key
}

# login NAME: in the present folder, a new password in password, login (NAME:PASSWORD) and htpasswd.
login() {
  openssl rand -hex 16 | tr -d '\n' >password
  printf '%s:%s' "$1" "$(<password)" >login
  htpasswd -iBn "$1" <password 2>/dev/null | head -1 >htpasswd
  chmod 600 password login
}

# Containers outlive containerd, and a crash outlives both: find their shims by our sockets' address, end what runs under them.
reap() {
  local file shim
  for file in /proc/[0-9]*/cmdline; do
    { tr '\0' ' ' <"$file"; } 2>/dev/null | grep -q -- "^[^ ]*containerd-shim.* -address $run/" || continue
    shim=${file#/proc/} shim=${shim%/cmdline}
    xargs -r kill -9 <"/proc/$shim/task/$shim/children" 2>/dev/null || true
    kill -9 "$shim" 2>/dev/null || true
  done
}

# Stops everything and removes its state, whatever was left by whom.
clean() {
  local link
  stop $(names '^kubelet-') scheduler controller-manager
  reap
  stop $(names '^containerd-') $(names .)
  awk '{print $2}' /proc/mounts | grep -E "^($state|$run)/" | sort -r | xargs -r umount -l || true
  for link in $(ip -o link show type bridge | grep -oE '\blc[0-9]+\b'); do ip link del "$link"; done
  rm -rf "$state" "$run"
}

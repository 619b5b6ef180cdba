#!/bin/sh
# package-boot.sh DIST: installs the package of DIST on an empty Debian that systemd boots in
# a container, and has the unit start, reload, come back after a kill, and stop, with a call
# to a skill between. Needs root, debootstrap and systemd-nspawn, and fetches 100 MB. Where it
# cannot be tried a line says so, and the exit code is 3.
set -eu

dist=${1:?usage: package-boot.sh DIST}
cannot() {
	echo "package-boot: not tried: $1" >&2
	exit 3
}
[ "$(id -u)" = 0 ] || cannot "it needs root"
have() { command -v debootstrap >/dev/null 2>&1 && command -v systemd-nspawn >/dev/null 2>&1; }
if ! have && [ "${CI:-}" = true ] && command -v apt-get >/dev/null 2>&1; then
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap systemd-container; } >/dev/null 2>&1 || true
fi
have || cannot "debootstrap and systemd-nspawn are not here"
deb=$(ls "$dist"/openskill_*_"$(dpkg --print-architecture)".deb) || cannot "$dist has no package for this machine; make dist makes one"

work=$(mktemp -d)
root=$work/root
name=openskill-boot-$$
container= leader=
# Ends what this script began, by the numbers that it was given.
end() {
	if [ -n "$leader" ]; then
		kill -s RTMIN+4 "$leader" 2>/dev/null || true # to systemd: power off
		patience 200 gone "$container" || true
	fi
	[ -z "$container" ] || kill -KILL "$container" 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT
gone() { ! kill -0 "$1" 2>/dev/null; }
# patience N COMMAND: tries it each tenth of a second, N times.
patience() {
	left=$1
	shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || return 1
		sleep 0.1
	done
}
fail() {
	echo "package-boot: $1" >&2
	[ -z "$leader" ] || inside journalctl -u openskill --no-pager -n 40 >&2 || true
	tail -n 20 "$work/console" >&2 2>/dev/null || true
	exit 1
}
step() { echo "package-boot: $1"; }

debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus bookworm "$root" >"$work/console" 2>&1 || {
	tail -n 3 "$work/console" >&2
	cannot "debootstrap could not make a root"
}
cp "$deb" "$root/root/openskill.deb"
chroot "$root" dpkg -i /root/openskill.deb >"$work/console" 2>&1 || fail "dpkg does not install it"
step "installed $(basename "$deb") in an empty Debian"
chroot "$root" systemctl enable --quiet openskill
chroot "$root" /usr/bin/openskill skill new greeter --lang javascript --in /etc/openskill/skills >/dev/null 2>&1

# The network is the container's own, so that no port of this machine is taken.
systemd-nspawn -q -D "$root" --machine="$name" --boot --private-network --register=no --keep-unit --console=read-only >"$work/console" 2>&1 </dev/null &
container=$!
first() { leader=$(cat "/proc/$container/task/$container/children" | awk '{ print $1 }') && [ -n "$leader" ]; }
patience 100 first || cannot "systemd-nspawn does not start here: $(tail -n 1 "$work/console")"
inside() { nsenter --target "$leader" --mount --uts --ipc --pid --net --cgroup --root --wd "$@"; }
# What cannot boot anything is no fault of the package; once systemd answers, all else is.
booted() {
	case $(inside systemctl is-system-running 2>/dev/null) in starting | running | degraded) ;; *) return 1 ;; esac
}
patience 600 booted || cannot "systemd does not boot in a container here: $(tail -n 1 "$work/console")"
call() {
	# With the client of this machine, in the network of the container.
	answer=$(nsenter --target "$leader" --net curl -s --max-time 20 http://127.0.0.1:8000/skills/greeter:invoke -d '{"input": {"name": "systemd"}}') &&
		case $answer in *'"greeting":"Hello, systemd!"'*) ;; *) return 1 ;; esac
}
patience 600 call || fail "the unit does not answer: ${answer:-nothing}"
step "booted: the unit runs, a skill answers"
unit() { inside systemctl show --property "$1" --value openskill; }
held() { inside cat "/proc/$(unit MainPID)/status"; }
held | grep -q "^CapBnd:.0000000000000000$" && held | grep -q "^NoNewPrivs:.1$" && held | grep -q "^Seccomp:.2$" && ! held | grep -q "^Uid:.0" ||
	fail "the host has more than the unit leaves it: $(held | grep -E '^(Uid|CapBnd|NoNewPrivs|Seccomp):' | tr '\n' ' ')"
step "the host has a user of its own, no capabilities, no new privileges, and a filter of system calls"
step "systemd-analyze security: $(inside systemd-analyze security --no-pager openskill | tail -n 1 | sed 's/^[^O]*//')"

echo 'concurrency: 7' >>"$root/etc/openskill/openskill.yaml"
inside systemctl reload openskill || fail "systemctl reload fails"
reloaded() { inside journalctl -u openskill --no-pager --grep "settings reloaded.*concurrency"; }
patience 100 reloaded || fail "the host says nothing of a reload"
step "reloaded: the host says what changed"

before=$(unit MainPID)
inside sh -c "kill -KILL $before"
back() { [ "$(unit MainPID)" != "$before" ] && call; }
patience 600 back || fail "it does not come back after a kill: ${answer:-nothing}"
step "killed and back: $(unit NRestarts) restart, a skill answers"

inside systemctl stop openskill
[ "$(unit Result)" = success ] || fail "it ends with $(unit Result)"
inside dpkg -r openskill >/dev/null 2>&1 || fail "dpkg does not remove it"
[ -d "$root/var/lib/openskill" ] || fail "removing took the state"
inside dpkg -P openskill >/dev/null 2>&1 || fail "dpkg does not purge it"
! [ -e "$root/var/lib/openskill" ] && ! [ -e "$root/etc/openskill/openskill.yaml" ] || fail "purging leaves something"
step "stopped, removed with the state kept, purged"

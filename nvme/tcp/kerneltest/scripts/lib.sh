# What the suites share. ADDR and PORT are the target's, NQN the subsystem's, HOSTNQN and HOSTID this host's.

# connect_drive [OPTION...]: an association with two I/O queues; waits until its block device is there.
connect_drive() {
	timeout "${PATIENCE:-120}" nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" \
		-i 2 --keep-alive-tmo=15 --reconnect-delay=1 --ctrl-loss-tmo=60 "$@"
	wait_for 120 find_drive
	find_drive
}

# find_drive sets CTRL (nvme0), NS (nvme0n1), GEN (ng0n1) of the connected subsystem, by sysfs: their numbers follow
# neither the namespace's nor the controller's.
find_drive() {
	CTRL= NS= GEN=
	for c in /sys/class/nvme/nvme*; do
		[ "$(cat "$c/subsysnqn" 2>/dev/null)" = "$NQN" ] && [ "$(cat "$c/state")" = live ] && CTRL=${c##*/}
	done
	[ -n "$CTRL" ] || return 1
	for s in /sys/class/nvme-subsystem/*; do
		[ "$(cat "$s/subsysnqn")" = "$NQN" ] || continue
		for b in "$s"/nvme*n*; do
			[ -e "$b/nsid" ] && [ "$(cat "$b/nsid")" = 1 ] && NS=${b##*/}
		done
	done
	[ -n "$NS" ] && [ -b "/dev/$NS" ] || return 1
	GEN=$(echo "$NS" | sed s/nvme/ng/)
	[ -c "/dev/$GEN" ]
}

# is_live: the association works (again).
is_live() {
	find_drive
}

disconnect_drive() {
	timeout 120 nvme disconnect -n "$NQN"
	wait_for 120 gone
}

gone() {
	for c in /sys/class/nvme/nvme*; do
		[ "$(cat "$c/subsysnqn" 2>/dev/null)" != "$NQN" ] || return 1
	done
}

# refused STATUS COMMAND...: the command must fail and what it says must hold STATUS.
refused() {
	status=$1
	shift
	if "$@" >/tmp/refused 2>&1; then
		cat /tmp/refused
		echo "was not refused: $*"
		return 1
	fi
	cat /tmp/refused
	grep -qiE "$status" /tmp/refused || {
		echo "was refused otherwise than with $status: $*"
		return 1
	}
}

# verify ENGINE MIB [OPTION...]: fio writes the drive in blocks of 4 KiB to 256 KiB and reads every byte back.
#
# A process that submits I/O also sends it, and the kernel does not ask for MSG_NOSIGNAL there: once in twenty runs in which
# the target was killed, fio ended with SIGPIPE. What is tested is whether its I/O comes to a good end, so it ignores that.
verify() {
	trap '' PIPE
	engine=$1 mib=$2
	shift 2
	fio --name=verify --filename="/dev/$NS" --ioengine="$engine" --direct=1 --iodepth=16 --rw=randwrite \
		--bsrange=4k-256k --size="${mib}m" --verify=crc32c --verify_fatal=1 --randseed=7 --output-format=terse --thread "$@"
}

# files DIR: a tree of files of odd sizes and their checksums.
files() {
	mkdir -p "$1/some/where"
	i=0
	for size in 0 1 511 4096 4097 70000 1048577 3000000; do
		i=$((i + 1))
		head -c "$size" /dev/urandom >"$1/some/where/file$i"
	done
	(cd "$1" && find . -type f ! -name sums -exec sha256sum {} + >sums)
}

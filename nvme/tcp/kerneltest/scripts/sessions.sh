# Associations that come and go: events, resets, a target that dies, digests. suite.sh left the drive connected.

# added_device sets ADDED_NS to the block device of the namespace that was added: there is one only while there is that.
added_device() {
	ADDED_NS=
	for b in /sys/class/nvme-subsystem/*/nvme*n*; do
		[ "$(cat "$b/nsid" 2>/dev/null)" = "$ADDED" ] && ADDED_NS=${b##*/}
	done
	[ -n "$ADDED_NS" ] && [ -b "/dev/$ADDED_NS" ]
}

no_added_device() {
	! added_device
}

# The writer has ended. Until the shell waits for it, it may be a zombie.
writer_ended() {
	[ ! -d "/proc/$writer" ] || grep -q '^State:.Z' "/proc/$writer/status"
}

# stacks prints where the kernel has each process that is not ended.
stacks() {
	for p in /proc/[0-9]*; do
		echo "$(cat "$p/comm" 2>/dev/null) $(grep '^State' "$p/status" 2>/dev/null)"
		cat "$p/stack" 2>/dev/null || true
	done
}

# A namespace comes, is used as any other, goes while it is written, and comes again: all under a connection that stays.
namespace_appears() {
	set -x
	before=$(cat "/sys/class/nvme/$CTRL/cntlid")
	for round in 1 2; do
		echo "round $round"
		add_namespace
		wait_for 120 added_device
		added_device
		nvme list-ns "/dev/$CTRL" | grep -q "0x$ADDED$"
		head -c 1048576 /dev/urandom >/tmp/pattern
		dd if=/tmp/pattern of="/dev/$ADDED_NS" bs=65536 oflag=direct 2>/dev/null
		dd if="/dev/$ADDED_NS" of=/tmp/back bs=65536 count=16 iflag=direct 2>/dev/null
		cmp /tmp/pattern /tmp/back
		# Where the device has gone, dd may make a file of its name, which it can write for ever.
		while dd if=/tmp/pattern of="/dev/$ADDED_NS" bs=65536 oflag=direct 2>/dev/null && [ -b "/dev/$ADDED_NS" ]; do :; done &
		writer=$!
		sleep 0.3
		remove_namespace
		removed=$ADDED_NS
		wait_for 120 no_added_device
		wait_for 120 writer_ended || { stacks; return 1; }
		wait $writer || true
		[ -b "/dev/$removed" ] || rm -f "/dev/$removed"
		nvme list-ns "/dev/$CTRL" >/tmp/list
		if grep "0x$ADDED$" /tmp/list; then return 1; fi
	done
	[ "$(cat "/sys/class/nvme/$CTRL/cntlid")" = "$before" ]
	nvme read "/dev/$NS" -n 1 -s 0 -c 0 -z "$(cat "/sys/block/$NS/queue/logical_block_size")" -d /tmp/back
}
if [ "$ADDS" = yes ]; then check namespace-appears namespace_appears; else skip namespace-appears "the target's namespaces are fixed"; fi

# Resets while fio writes and verifies: not one operation may fail or be lost.
reset_under_io() {
	set -x
	verify libaio 16 --time_based --runtime=6 &
	job=$!
	for i in 1 2 3; do
		sleep 1
		nvme reset "/dev/$CTRL"
		wait_for 120 is_live
	done
	wait $job || { echo "fio ended with $?"; return 1; }
}
check reset-under-io reset_under_io

# The target goes away in the middle of it and comes back; the guest waits.
restart_under_io() {
	set -x
	verify libaio 16 --time_based --runtime=6 &
	job=$!
	sleep 1
	restart_target
	wait $job || { echo "fio ended with $?"; return 1; }
	wait_for 120 is_live
	verify libaio 4
}
check restart-under-io restart_under_io

check disconnect disconnect_drive

digests() {
	connect_drive --hdr-digest --data-digest
	verify libaio 12
	mkfs.ext4 -q -F "/dev/$NS"
	mount -t ext4 "/dev/$NS" /mnt
	files /mnt
	umount /mnt
	mount -t ext4 "/dev/$NS" /mnt
	(cd /mnt && sha256sum -c sums)
	umount /mnt
	disconnect_drive
}
check digests digests

header_digest_only() {
	connect_drive --hdr-digest
	verify libaio 4
	disconnect_drive
}
check header-digest-only header_digest_only

# No SQ flow control: the target may tell success with the last data, without a completion.
no_flow_control() {
	connect_drive --disable-sqflow
	verify libaio 4
	disconnect_drive
}
check no-flow-control no_flow_control

reconnects() {
	for i in 1 2 3; do
		connect_drive
		disconnect_drive
	done
}
check reconnects reconnects

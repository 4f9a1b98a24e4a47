# Associations that come and go: events, resets, a target that dies, digests. suite.sh left the drive connected.

namespace_appears() {
	grep -l . /sys/class/nvme-subsystem/*/nvme*n*/nsid | wc -l >/tmp/before
	add_namespace
	wait_for 20 sh -c 'grep -qx 2 /sys/class/nvme-subsystem/*/nvme*n*/nsid'
	nvme list-ns "/dev/$CTRL" | grep -q 0x2
	remove_namespace
	wait_for 20 sh -c '! grep -qx 2 /sys/class/nvme-subsystem/*/nvme*n*/nsid'
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
		wait_for 20 is_live
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
	wait_for 30 is_live
	verify libaio 4
}
LIMIT=90
check restart-under-io restart_under_io
LIMIT=60

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

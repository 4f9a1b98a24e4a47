# What this kernel sends to our target, for the golden traces. Sourced after millrace.sh.
. /guest/lib.sh

# session NAME [OPTION...]: an association from its beginning to its end, with what operators ask and some reads and writes.
session() {
	name=$1
	shift
	host record "$name"
	connect_drive "$@"
	nvme list
	for ask in id-ctrl fw-log error-log smart-log effects-log; do nvme $ask "/dev/$CTRL" >/dev/null; done
	nvme list-ns "/dev/$CTRL"
	nvme id-ns "/dev/$NS" >/dev/null
	nvme ns-descs "/dev/$NS" >/dev/null
	for fid in 2 4 7 0xb 0xf; do nvme get-feature "/dev/$CTRL" --feature-id=$fid; done
	dd if=/dev/zero of="/dev/$NS" bs=4096 count=1 oflag=direct 2>/dev/null
	dd if=/dev/zero of="/dev/$NS" bs=131072 count=1 oflag=direct 2>/dev/null
	dd if="/dev/$NS" of=/dev/null bs=65536 count=1 iflag=direct 2>/dev/null
	nvme flush "/dev/$NS" -n 1
	blkdiscard -o 65536 -l 65536 "/dev/$NS"
	disconnect_drive
	host record
}
check plain session plain
check digests session digests --hdr-digest --data-digest
check no-flow-control session no-flow-control --disable-sqflow

discovery() {
	host record discover
	timeout 120 nvme discover -t tcp -a "$ADDR" -s "$PORT" -q "$HOSTNQN" -I "$HOSTID"
	host record
}
check discover discovery

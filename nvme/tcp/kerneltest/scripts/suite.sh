# An unmodified Linux host over a drive: everything that an operator's tools do. The target is up at ADDR:PORT.
. /guest/lib.sh

discover() {
	timeout 120 nvme discover -t tcp -a "$ADDR" -s "$PORT" -q "$HOSTNQN" -I "$HOSTID" | tee /tmp/discovered
	grep -q "subnqn: *$NQN$" /tmp/discovered
	grep -q "trtype: *tcp" /tmp/discovered
	grep -q "subtype: *nvme subsystem" /tmp/discovered
	grep -q "sectype: *none" /tmp/discovered
}
check discover discover

refused_host() {
	refused 'failed|denied|invalid|could not|Input/output' timeout 120 nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$NQN" \
		-q nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000dead \
		-I 00000000-0000-4000-8000-00000000dead
	gone
}
check refused-host refused_host

wrong_nqn() {
	refused 'failed|invalid|could not|Input/output' timeout 120 nvme connect -t tcp -a "$ADDR" -s "$PORT" \
		-n nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-0000000000ff -q "$HOSTNQN" -I "$HOSTID"
}
check wrong-nqn wrong_nqn

check connect connect_drive || exit 1
find_drive

# json NAME COMMAND...: what a tool tells, for the host to judge.
json() {
	name=$1
	shift
	"$@" -o json >/tmp/json
	cat /tmp/json
	keep "$name.json" /tmp/json
}
check list json list nvme list
check list-subsys json list-subsys nvme list-subsys
check id-ctrl json id-ctrl nvme id-ctrl "/dev/$CTRL"
check id-ns json id-ns nvme id-ns "/dev/$NS"
check list-ns json list-ns nvme list-ns "/dev/$CTRL"
check ns-descs json ns-descs nvme ns-descs "/dev/$NS"
check smart-log json smart-log nvme smart-log "/dev/$CTRL"
check error-log json error-log nvme error-log "/dev/$CTRL"
check fw-log json fw-log nvme fw-log "/dev/$CTRL"

# raw NAME: the bytes of a log page, a structure or a feature.
raw() {
	name=$1
	shift
	"$@" -b >"/tmp/$name"
	[ -s "/tmp/$name" ]
	keep "$name.bin" "/tmp/$name"
}
check effects-log raw effects-log nvme get-log "/dev/$CTRL" --log-id=5 --log-len=4096
check changed-namespaces raw changed-namespaces nvme get-log "/dev/$CTRL" --log-id=4 --log-len=4096
check unknown-log refused 'invalid' nvme get-log "/dev/$CTRL" --log-id=0xbf --log-len=512
if [ "$TARGET" = millrace ]; then
	check supported-logs raw supported-logs nvme get-log "/dev/$CTRL" --log-id=0 --log-len=1024
	check vendor-log raw vendor-log nvme get-log "/dev/$CTRL" --log-id=0xc0 --log-len=512
	check id-iocs nvme id-iocs "/dev/$CTRL"
	check nvm-id-ctrl nvme nvm-id-ctrl "/dev/$CTRL"
	check cmdset-ind-id-ns nvme cmdset-ind-id-ns "/dev/$CTRL" --namespace-id=1
fi

features() {
	for fid in $FEATURES; do
		echo "feature $fid"
		nvme get-feature "/dev/$CTRL" --feature-id="$fid" --namespace-id="$([ "$fid" = 5 ] && echo 1 || echo 0)"
	done
	# Over fabrics a host's identifier has 16 bytes, and one that asks for eight is refused.
	nvme get-feature "/dev/$CTRL" --feature-id=0x81 --cdw11=1 --data-len=16 -b | od -An -tx1 | tr -d ' \n' >/tmp/id
	[ "$(cat /tmp/id)" = "$(echo "$HOSTID" | tr -d -)" ]
	refused 'invalid' nvme get-feature "/dev/$CTRL" --feature-id=0x81 --data-len=8
	refused 'invalid' nvme get-feature "/dev/$CTRL" --feature-id=0xbe
	refused 'invalid' nvme set-feature "/dev/$CTRL" --feature-id=0xbe --value=1
}
check features features

# Every passthru goes through the block device and the generic one.
passthru() {
	head -c 4096 /dev/urandom >/tmp/pattern
	blocks=$((4096 / $(cat "/sys/block/$NS/queue/logical_block_size") - 1))
	for device in "$NS" "$GEN"; do
		echo "through $device"
		nvme write "/dev/$device" -n 1 -s 64 -c "$blocks" -z 4096 -d /tmp/pattern
		rm -f /tmp/back
		nvme read "/dev/$device" -n 1 -s 64 -c "$blocks" -z 4096 -d /tmp/back
		cmp /tmp/pattern /tmp/back
		nvme io-passthru "/dev/$device" -o 2 -n 1 --cdw10=64 --cdw12="$blocks" -l 4096 -r -b >/tmp/back
		cmp /tmp/pattern /tmp/back
		nvme flush "/dev/$device" -n 1
		head -c 4096 /dev/urandom >/tmp/pattern
	done
}
check passthru passthru

past_the_end() {
	# nvmet leaves the range to its block layer, which calls it an internal error.
	why='LBA.*range|LBA_RANGE|capacity'
	[ "$TARGET" = millrace ] || why='NVMe status'
	lba=$(cat "/sys/block/$NS/queue/logical_block_size")
	end=$(($(cat "/sys/block/$NS/size") * 512 / lba))
	for device in "$NS" "$GEN"; do
		for first in "$end" $((end - 1)) 0xffffffffffffffff; do
			refused "$why" nvme read "/dev/$device" -n 1 -s "$first" -c 1 -z $((2 * lba)) -d /tmp/back
			refused "$why" nvme write "/dev/$device" -n 1 -s "$first" -c 1 -z $((2 * lba)) -d /dev/zero
		done
	done
}
check past-the-end past_the_end

unknown_opcodes() {
	for device in "$NS" "$GEN"; do
		refused 'invalid.*(op|command)' nvme io-passthru "/dev/$device" -o 0x90 -n 1
		refused 'invalid.*(op|command)' nvme io-passthru "/dev/$device" -o 0x92 -n 1 -l 4096 -r
	done
	refused 'invalid.*(op|command)' nvme admin-passthru "/dev/$CTRL" -o 0xd0
	refused 'invalid.*(op|command)' nvme admin-passthru "/dev/$CTRL" -o 0xd2 -l 4096 -r
}
check unknown-opcodes unknown_opcodes

compare() {
	head -c 4096 /dev/urandom >/tmp/pattern
	blocks=$((4096 / $(cat "/sys/block/$NS/queue/logical_block_size") - 1))
	for device in "$NS" "$GEN"; do
		nvme write "/dev/$device" -n 1 -s 8 -c "$blocks" -z 4096 -d /tmp/pattern
		nvme compare "/dev/$device" -n 1 -s 8 -c "$blocks" -z 4096 -d /tmp/pattern
		refused 'compare|285' nvme compare "/dev/$device" -n 1 -s 8 -c "$blocks" -z 4096 -d /dev/zero
	done
}
if [ "$TARGET" = millrace ]; then check compare compare; else skip compare "nvmet has no Compare"; fi

zeroes_and_discard() {
	lba=$(cat "/sys/block/$NS/queue/logical_block_size")
	head -c 65536 /dev/urandom >/tmp/pattern
	dd if=/tmp/pattern of="/dev/$NS" bs=65536 count=1 oflag=direct 2>/dev/null
	nvme write-zeroes "/dev/$NS" -n 1 -s 0 -c $((8192 / lba - 1))
	nvme dsm "/dev/$NS" -n 1 -d -s $((8192 / lba)) -b $((8192 / lba))
	blkdiscard -o 16384 -l 16384 "/dev/$NS"
	dd if="/dev/$NS" of=/tmp/back bs=65536 count=1 iflag=direct 2>/dev/null
	tail -c 32768 /tmp/pattern >/tmp/want
	tail -c 32768 /tmp/back | cmp - /tmp/want
	# What was deallocated reads as zeros from a drive that says so; nvmet does not.
	head -c 8192 /dev/zero | cmp -n 8192 - /tmp/back
	[ "$TARGET" != millrace ] || head -c 32768 /dev/zero | cmp -n 32768 - /tmp/back
}
check zeroes-and-discard zeroes_and_discard

filesystem() {
	mkfs.ext4 -q -F "/dev/$NS"
	mount -t ext4 "/dev/$NS" /mnt
	files /mnt
	umount /mnt
	mount -t ext4 "/dev/$NS" /mnt
	(cd /mnt && sha256sum -c sums)
	rm -r /mnt/some
	files /mnt/again
	umount /mnt
	e2fsck -f -n "/dev/$NS"
}
check filesystem filesystem

check fio-libaio verify libaio 16
check fio-io_uring verify io_uring 16

# fio through the generic device: io_uring commands, as our own passthrough sends them.
uring_cmd() {
	fio --name=cmd --filename="/dev/$GEN" --ioengine=io_uring_cmd --cmd_type=nvme --iodepth=8 --rw=randwrite --bs=4k \
		--size=4m --verify=crc32c --verify_fatal=1 --output-format=terse --thread
}
check fio-io_uring_cmd uring_cmd

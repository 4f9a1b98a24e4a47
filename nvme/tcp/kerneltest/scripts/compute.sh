# The namespaces that compute, through passthrough and by nvme-cli alone. The drive is connected as find_drive found it.

# generic NSID: the name of a namespace's generic device. Only the device knows: 6.12 scans namespaces in any order.
generic() {
	for g in /dev/"${GEN%n*}"n*; do
		if nvme get-ns-id "$g" | grep -q "namespace-id:$1$"; then
			echo "${g#/dev/}"
			return
		fi
	done
	return 1
}
SLM=$(generic 2)
CP=$(generic 3)

namespaces() {
	for nsid in 1 2 3; do
		echo "namespace $nsid"
		nvme ns-descs "/dev/$CTRL" -n "$nsid"
	done
	[ -c "/dev/$SLM" ]
	[ -c "/dev/$CP" ]
	nvme list-ns "/dev/$CTRL" -y 3 | grep -q ':0x2$'
	nvme list-ns "/dev/$CTRL" -y 4 | grep -q ':0x3$'
}
check compute-namespaces namespaces

# Vendor set: reserve, store, copy from flash and execute in one command, fetch.
vendor_set() {
	refused 'denied|range|invalid' nvme io-passthru "/dev/$GEN" -o 0x82 -n 1 --cdw10=0 --cdw12=4096 -l 4096 -r
	nvme admin-passthru "/dev/$CTRL" -o 0xc8 --cdw10=0 --cdw12=65536
	head -c 4099 /dev/urandom >/tmp/in
	nvme io-passthru "/dev/$GEN" -o 0x85 -n 1 --cdw10=4097 --cdw12=4099 -l 4099 -w -i /tmp/in
	nvme io-passthru "/dev/$NS" -o 0x82 -n 1 --cdw10=4097 --cdw12=4099 -l 4099 -r -b >/tmp/out
	cmp /tmp/in /tmp/out

	printf 'ABCDEFGH%.0s' $(seq 512) >/tmp/flash
	blocks=$((4096 / $(cat "/sys/block/$NS/queue/logical_block_size") - 1))
	nvme write "/dev/$NS" -n 1 -s 0 -c "$blocks" -z 4096 -d /tmp/flash
	nvme io-passthru "/dev/$GEN" -o 0x81 -n 1 -l "$(stat -c %s /opt/preprocess)" -w -i /opt/preprocess
	nvme io-passthru "/dev/$GEN" -o 0x82 -n 1 --cdw10=8192 --cdw12=4096 -l 4096 -r -b >/tmp/out
	printf 'BCDEFGHI%.0s' $(seq 512) | cmp - /tmp/out
	nvme admin-passthru "/dev/$CTRL" -o 0xcc --cdw10=0 --cdw12=65536
	refused 'denied|range|invalid' nvme io-passthru "/dev/$GEN" -o 0x82 -n 1 --cdw10=0 --cdw12=4096 -l 4096 -r
}
check compute-vendor-set vendor_set

# Standard sets: Subsystem Local Memory on its own namespace, and the execution on that of programs.
standard_set() {
	nvme admin-passthru "/dev/$CTRL" -o 0xc8 --cdw10=0 --cdw12=65536
	head -c 1000 /dev/urandom >/tmp/in
	nvme io-passthru "/dev/$SLM" -o 0x05 -n 2 --cdw10=100 --cdw12=1000 -l 1000 -w -i /tmp/in
	nvme io-passthru "/dev/$SLM" -o 0x02 -n 2 --cdw10=100 --cdw12=1000 -l 1000 -r -b >/tmp/out
	cmp /tmp/in /tmp/out
	refused 'Invalid argument' nvme io-passthru "/dev/$SLM" -o 0x02 -n 1 --cdw10=0 --cdw12=4096 -l 4096 -r
	refused 'invalid.*(op|command)' nvme io-passthru "/dev/$CP" -o 0x90 -n 3
	# The most data of a command; the kernel would send more, and the drive must refuse that by itself.
	nvme io-passthru "/dev/$SLM" -o 0x02 -n 2 --cdw10=0 --cdw12=65536 -l 65536 -r -b >/tmp/out
	[ "$(stat -c %s /tmp/out)" = 65536 ]
	refused 'invalid|range|denied' nvme io-passthru "/dev/$SLM" -o 0x02 -n 2 --cdw10=65536 --cdw12=4096 -l 4096 -r
	nvme admin-passthru "/dev/$CTRL" -o 0xcc --cdw10=0 --cdw12=65536
}
check compute-standard-set standard_set

# A namespace's change reaches the host as an event, and the host looks again.
namespace_event() {
	dmesg | grep -c 'rescanning namespaces' >/tmp/before || true
	host namespace-changed 1
	heard() { [ "$(dmesg | grep -c 'rescanning namespaces')" -gt "$(cat /tmp/before)" ]; }
	wait_for 120 heard
	find_drive
}
check namespace-event namespace_event

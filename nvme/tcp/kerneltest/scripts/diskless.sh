# A drive without flash, which the target serves as another subsystem, CARD: what Linux and nvme-cli make of a drive that
# computes and has no block device. The namespaces are 2 (memory) and 3 (programs).

# find_card sets CARD_CTRL to the connected controller of CARD.
find_card() {
	CARD_CTRL=
	for c in /sys/class/nvme/nvme*; do
		[ "$(cat "$c/subsysnqn" 2>/dev/null)" = "$CARD" ] && [ "$(cat "$c/state")" = live ] && CARD_CTRL=${c##*/}
	done
	[ -n "$CARD_CTRL" ] && [ -c "/dev/$CARD_CTRL" ]
}

# card_generic NSID: the name of the generic device of a namespace of the card.
card_generic() {
	for s in /sys/class/nvme-subsystem/*; do
		[ "$(cat "$s/subsysnqn")" = "$CARD" ] || continue
		for g in "$s"/ng*n* /sys/class/nvme/"$CARD_CTRL"/ng*n*; do
			g=${g##*/}
			[ -c "/dev/$g" ] && nvme get-ns-id "/dev/$g" | grep -q "namespace-id:$1$" && echo "$g" && return
		done
	done
	return 1
}

card_devices() { card_generic 2 && card_generic 3; }

card_connect() {
	timeout "${PATIENCE:-120}" nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$CARD" -q "$HOSTNQN" -I "$HOSTID" -i 2 \
		--keep-alive-tmo="${1:-15}" --reconnect-delay=1 --ctrl-loss-tmo=60
	wait_for 120 find_card
	find_card
	wait_for 120 card_devices
}

card_gone() {
	for c in /sys/class/nvme/nvme*; do
		[ "$(cat "$c/subsysnqn" 2>/dev/null)" != "$CARD" ] || return 1
	done
}

card_disconnect() {
	timeout 120 nvme disconnect -n "$CARD"
	wait_for 120 card_gone
}

card_discover() {
	timeout 120 nvme discover -t tcp -a "$ADDR" -s "$PORT" -q "$HOSTNQN" -I "$HOSTID" | tee /tmp/discovered
	grep -q "subnqn: *$CARD$" /tmp/discovered
}
check card-discover card_discover
check card-connect card_connect || exit 1
find_card

check card-list json card-list nvme list
check card-list-subsys json card-list-subsys nvme list-subsys
check card-id-ctrl json card-id-ctrl nvme id-ctrl "/dev/$CARD_CTRL"
check card-list-ns json card-list-ns nvme list-ns "/dev/$CARD_CTRL"
check card-smart-log json card-smart-log nvme smart-log "/dev/$CARD_CTRL"
check card-error-log nvme error-log "/dev/$CARD_CTRL"
check card-fw-log nvme fw-log "/dev/$CARD_CTRL"
check card-id-iocs nvme id-iocs "/dev/$CARD_CTRL"

# Namespace 1 is inactive: its Identify data are zeros, it has no descriptors of its own, and no block device.
card_no_blocks() {
	nvme id-ns "/dev/$CARD_CTRL" -n 1 -b >/tmp/id-ns
	head -c 4096 /dev/zero | cmp - /tmp/id-ns
	refused 'invalid' nvme ns-descs "/dev/$CARD_CTRL" -n 1
	for s in /sys/class/nvme-subsystem/*; do
		[ "$(cat "$s/subsysnqn")" = "$CARD" ] || continue
		for b in "$s"/nvme*n*; do
			name=${b##*/}
			if [ -b "/dev/$name" ]; then
				[ "$(cat "/sys/block/$name/size")" = 0 ] || { echo "$name is a block device of a drive without flash"; return 1; }
			fi
		done
	done
}
check card-no-blocks card_no_blocks

# The vendor set goes to namespace 3, and Preprocess names no block.
card_vendor_set() {
	g=$(card_generic 3)
	nvme admin-passthru "/dev/$CARD_CTRL" -o 0xc8 --cdw10=0 --cdw12=65536
	printf 'ABCDEFGH%.0s' $(seq 512) >/tmp/in
	nvme io-passthru "/dev/$g" -o 0x85 -n 3 --cdw10=0 --cdw12=4096 -l 4096 -w -i /tmp/in
	nvme io-passthru "/dev/$g" -o 0x81 -n 3 -l "$(stat -c %s /opt/preprocess-stored)" -w -i /opt/preprocess-stored
	nvme io-passthru "/dev/$g" -o 0x82 -n 3 --cdw10=8192 --cdw12=4096 -l 4096 -r -b >/tmp/out
	printf 'BCDEFGHI%.0s' $(seq 512) | cmp - /tmp/out
	# Copies from flash are refused: there is none.
	refused 'invalid' nvme io-passthru "/dev/$g" -o 0x81 -n 3 -l "$(stat -c %s /opt/preprocess)" -w -i /opt/preprocess
	nvme admin-passthru "/dev/$CARD_CTRL" -o 0xcc --cdw10=0 --cdw12=65536
}
check card-vendor-set card_vendor_set

card_standard_set() {
	g=$(card_generic 2)
	nvme admin-passthru "/dev/$CARD_CTRL" -o 0xc8 --cdw10=0 --cdw12=65536
	head -c 1000 /dev/urandom >/tmp/in
	nvme io-passthru "/dev/$g" -o 0x05 -n 2 --cdw10=100 --cdw12=1000 -l 1000 -w -i /tmp/in
	nvme io-passthru "/dev/$g" -o 0x02 -n 2 --cdw10=100 --cdw12=1000 -l 1000 -r -b >/tmp/out
	cmp /tmp/in /tmp/out
	nvme admin-passthru "/dev/$CARD_CTRL" -o 0xcc --cdw10=0 --cdw12=65536
}
check card-standard-set card_standard_set

card_reset() {
	nvme reset "/dev/$CARD_CTRL"
	wait_for 120 find_card
	wait_for 120 card_devices
	nvme smart-log "/dev/$CARD_CTRL" >/dev/null
}
check card-reset card_reset
check card-disconnect card_disconnect

# With nothing to do the association lives by keep-alives alone: it is the same one after three of its time-outs.
card_keep_alive() {
	card_connect 2
	before=$(cat "/sys/class/nvme/$CARD_CTRL/cntlid")
	dmesg | grep -c 'reconnect\|keep.alive\|error recovery' >/tmp/before || true
	sleep 7
	find_card
	[ "$(cat "/sys/class/nvme/$CARD_CTRL/cntlid")" = "$before" ]
	dmesg | grep -c 'reconnect\|keep.alive\|error recovery' >/tmp/after || true
	cmp /tmp/before /tmp/after
	nvme smart-log "/dev/$CARD_CTRL" >/dev/null
}
check card-keep-alive card_keep_alive

# The target dies and comes back: the host connects again by itself, and the namespaces are there.
card_restart() {
	restart_target
	wait_for 120 find_card
	wait_for 120 card_devices
	nvme smart-log "/dev/$CARD_CTRL" >/dev/null
	card_disconnect
}
check card-restart card_restart

# A kernel that authenticates by DH-HMAC-CHAP. ADDR, NQN, HOSTNQN, HOSTID as in lib.sh; KEY and CTRLKEY are the host's and
# the drive's, WRONGKEY neither; PORTS lists NAME=PORT of targets that accept one hash and one group each.
. /guest/lib.sh

use() {
	find_drive
	dd if="/dev/$NS" of=/dev/null bs=4096 count=16 iflag=direct
}

each() {
	PORT=$1
	shift
	connect_drive "$@"
	use
	disconnect_drive
}

# An emulated processor takes half a minute for the largest group, and several where the machine has other work.
PATIENCE=240
for p in $PORTS; do
	check "both-${p%=*}" each "${p#*=}" --dhchap-secret="$KEY" --dhchap-ctrl-secret="$CTRLKEY"
done
PORT=${PORTS%% *}
PORT=${PORT#*=}
check host-only each "$PORT" --dhchap-secret="$KEY"

# turned_away OPTION...: no association comes to be.
turned_away() {
	refused 'failed|denied|invalid|could not|refused|Input/output|key' timeout 120 nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$NQN" \
		-q "$HOSTNQN" -I "$HOSTID" -i 2 --ctrl-loss-tmo=0 "$@"
	wait_for 120 gone
}
check wrong-key turned_away --dhchap-secret="$WRONGKEY"
check no-key turned_away
check wrong-drive-key turned_away --dhchap-secret="$KEY" --dhchap-ctrl-secret="$WRONGKEY"

# Writing the secret makes the kernel authenticate every queue again, under the reads of fio.
again() {
	connect_drive --dhchap-secret="$KEY" --dhchap-ctrl-secret="$CTRLKEY"
	verify libaio 8 --time_based --runtime=4 &
	job=$!
	for i in 1 2 3; do
		sleep 1
		echo "$KEY" >"/sys/class/nvme/$CTRL/dhchap_secret"
	done
	wait $job
	find_drive
	nvme reset "/dev/$CTRL"
	wait_for 120 is_live
	use
	disconnect_drive
}
check again again

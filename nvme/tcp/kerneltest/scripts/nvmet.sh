# The kernel's own target, in the guest: what our tests are proved against. Sourced before suite.sh.

nvmet=/sys/kernel/config/nvmet

# null NAME MIB: a block device in memory, with discard.
null() {
	mkdir "/sys/kernel/config/nullb/$1"
	for setting in "size $2" "memory_backed 1" "blocksize ${LBA:-512}" "discard 1" "power 1"; do
		echo "${setting#* }" >"/sys/kernel/config/nullb/$1/${setting% *}"
	done
	wait_for 120 test -b "/dev/$1"
}

# namespace NSID DEVICE
namespace() {
	at=$nvmet/subsystems/$NQN/namespaces/$1
	mkdir "$at"
	echo "/dev/$2" >"$at/device_path"
	echo 1 >"$at/enable"
}

serve() {
	null drive 64
	mkdir "$nvmet/hosts/$HOSTNQN"
	mkdir "$nvmet/subsystems/$NQN"
	echo 0 >"$nvmet/subsystems/$NQN/attr_allow_any_host"
	echo Millrace >"$nvmet/subsystems/$NQN/attr_model"
	ln -s "$nvmet/hosts/$HOSTNQN" "$nvmet/subsystems/$NQN/allowed_hosts/$HOSTNQN"
	namespace 1 drive
	port_up
}

port_up() {
	port=$nvmet/ports/1
	mkdir "$port"
	echo tcp >"$port/addr_trtype"
	echo ipv4 >"$port/addr_adrfam"
	echo "$ADDR" >"$port/addr_traddr"
	echo "$PORT" >"$port/addr_trsvcid"
	ln -s "$nvmet/subsystems/$NQN" "$port/subsystems/$NQN"
}

ADDED=2

add_namespace() {
	[ -b /dev/more ] || null more 16
	namespace $ADDED more
}

remove_namespace() {
	echo 0 >"$nvmet/subsystems/$NQN/namespaces/$ADDED/enable"
	rmdir "$nvmet/subsystems/$NQN/namespaces/$ADDED"
}

# The kernel's target cannot be killed; taking its port away and making it again is the nearest.
restart_target() {
	rm "$nvmet/ports/1/subsystems/$NQN"
	rmdir "$nvmet/ports/1"
	sleep 2
	port_up
}

check serve serve

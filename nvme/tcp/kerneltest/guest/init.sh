#!/bin/busybox sh
# The guest's first process: makes the machine usable, runs /guest/script, reports over the second serial port.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ TMPDIR=/tmp
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
ln -sf /proc/self/fd /dev/fd
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
. /guest/shell

while read -r module parameters; do
	insmod "$module" $parameters || say "problem could not load $module"
done </guest/modules
[ -d /sys/kernel/config ] && mount -t configfs config /sys/kernel/config
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
ip link set lo up
if [ -e /sys/class/net/eth0 ]; then
	ip link set eth0 up
	ip addr add 10.0.2.15/24 dev eth0
	ip route add default via 10.0.2.2
fi
say "uname $(uname -a)"

set -a
. /guest/environment
set +a
(. /guest/script)
say "end $?"
sync
# The host closes the guest when it has read the last line; this is for when it does not.
reboot -f

# A second network, on which the host of this guest reaches it.
forwarded() {
	ifconfig eth1 "$ADDR" netmask 255.255.255.0 up
}
check network forwarded

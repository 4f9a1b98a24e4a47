# Our target, in a process on the machine that runs the tests. Sourced before suite.sh.

restart_target() {
	host kill-target
	sleep 2
	host start-target
}

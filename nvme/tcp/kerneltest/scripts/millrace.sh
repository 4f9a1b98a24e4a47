# Our target, in a process on the machine that runs the tests. Sourced before suite.sh.

restart_target() {
	host kill-target
	sleep 2
	host start-target
}

# The first identifier that is not the drive's own.
ADDED=4

add_namespace() {
	host add-namespace $ADDED
}

remove_namespace() {
	host remove-namespace $ADDED
}

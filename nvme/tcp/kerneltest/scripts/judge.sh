# Our initiator, which the host of this guest runs, is tried against the kernel's target. Sourced after forward.sh and nvmet.sh.

check judged host judge

# Events of namespaces that come and go reach a host that listens.
events() {
	host listen
	add_namespace
	host heard | grep -x "changed: \[$ADDED\]"
	remove_namespace
	host heard | grep -x "changed: \[$ADDED\]"
}
check events events

// Package guest boots Debian's unmodified Linux kernels under QEMU for tests: a kernel, an archive of files made in
// Go, a shell script, and the result of the script. A boot takes about three seconds of one processor and needs no
// privilege, no /dev/kvm and no disk image.
//
// Boot starts the kernel, whose first process mounts the usual file systems, loads the modules that were named, sets up
// the network (the host's loopback is HostLoopback) and runs the script with busybox's shell. The script calls
//
//	check NAME COMMAND [ARG...]   one named result: passed when the command or shell function ends with 0
//	skip NAME WHY                 a named check that this guest cannot do
//	keep NAME FILE                bring FILE to the host as Result.Files[NAME]
//	host NAME [ARG...]            run the function Options.Host[NAME] on the host and print what it answers
//	wait_for SECONDS COMMAND...   try the command until it succeeds, ten times a second
//
// A check runs in a subshell of its own with "set -e", and is ended after LIMIT seconds (600 unless the script sets
// LIMIT). The limit ends checks that hang, and is long enough for a machine with much other work. Busybox's shell runs
// its own mke2fs or fsck and ignores PATH: call mkfs.ext4 and e2fsck, which Busybox does not have.
//
// # What a guest needs
//
// The script .ci/kernel at the module's root sets it up outside the repository and prints the folder. The tests of the
// kernel tier run when MILLRACE_KERNEL is 1, and then anything missing is a failure; otherwise they skip.
// MILLRACE_GUESTS names the folder; without it, Boot asks .ci/kernel.
//
// # Concurrency
//
// Boot may be called from several tests at once; each guest is a process and about a gigabyte of memory. Functions in
// Options.Host run one at a time, on a goroutine of Boot's. QEMU ends with Boot, and with the test's process when that
// is killed.
//
// # Errors
//
// Boot fails the test when the guest cannot be made or started, does not end in time, or its script does not reach its
// end, and when its kernel warned (WARNING, BUG, Oops, a hung task). Result.Subtests reports the checks that failed.
//
// # Debugging
//
// A failed test logs the end of the guest's console. MILLRACE_KERNEL_LOGS names a folder that gets every console and
// every check's output whole. The script's own output goes to the console: "set -x" shows there.
package guest

// Package kerneltest is the tier of tests that use foreign software: unmodified Linux kernels, booted by package
// guest, are hosts of Millrace's NVMe/TCP target, with nvme-cli, fio and e2fsprogs as operators use them.
//
// The scripts in folder scripts run in the guest and make named checks, each of which becomes a subtest. This package
// checks the JSON that the tools print. The same scripts run against the kernel's own target inside the guest: a
// check that fails there is a mistake of the tests.
//
// The target runs in a process of its own on this machine, started from the test binary, so that killing it is real.
//
// # Running
//
//	MILLRACE_KERNEL=1 go test -timeout 20m ./nvme/tcp/kerneltest/...
//
// and see package guest for the requirements, and for logs.
package kerneltest

// Package telemetry times NVMe commands where the kernel's driver sees them: a histogram of latencies for every
// controller and opcode, of every process's commands, at the cost of two short programs a command.
//
// # Overview
//
// [Watch] attaches to the tracepoints nvme_setup_cmd and nvme_complete_rq. The programs are built here with
// github.com/cilium/ebpf's package asm, so no compiler is needed; where their fields lie is read from the tracepoint's
// format file, as kernels differ. [Watcher.Read] gives what was counted since.
//
// Watching is never needed for anything else. Without privilege, without the kernel's NVMe driver or on another system
// Watch fails with [ErrUnavailable] and says why; callers log that and go on.
//
// Counts are of what was seen. The kernel passes over a tracepoint's programs when it fires on a processor that is in
// the middle of one, so a completion interrupt at such a moment goes unseen, with all the commands that it completes.
//
// # Concurrency
//
// A Watcher is safe for concurrent use. Close ends the counting.
//
// # Errors
//
// Watch wraps ErrUnavailable where this machine cannot watch; anything else is a fault.
//
// # Debugging
//
// cat /sys/kernel/tracing/events/nvme/nvme_setup_cmd/format shows what is read; bpftool prog shows the programs.
package telemetry

// Package telemetry times NVMe commands in the kernel's driver: it counts the latencies of every process's commands in
// a histogram for each controller, queue and opcode. Each command costs two short programs.
//
// # Overview
//
// [Watch] attaches programs to the tracepoints nvme_setup_cmd and nvme_complete_rq. The programs are built with
// package asm of github.com/cilium/ebpf, so that no compiler is needed; the offsets of their fields are read from the
// tracepoint's format file, because kernels differ. [Watcher.Read] returns the latencies that were counted since.
//
// Nothing depends on watching. Without privilege, without the kernel's NVMe driver or on another system Watch fails
// with [ErrUnavailable] and says why; callers log that and go on.
//
// Some commands are not counted. When a tracepoint fires on a processor that is running a tracepoint's program, the
// kernel skips the program. A completion interrupt at such a moment is missed, with all the commands that it completes.
//
// # Concurrency
//
// A Watcher is safe for concurrent use. Close stops the counting.
//
// # Errors
//
// The error of Watch wraps ErrUnavailable where this machine cannot watch. Any other error is a fault.
//
// # Debugging
//
// cat /sys/kernel/tracing/events/nvme/nvme_setup_cmd/format shows the format that is read; bpftool prog shows the
// programs.
package telemetry

// Package machineload measures how much of the machine is in use: processor, memory, network.
//
// # Overview
//
// A [Meter] compares the kernel's counters with those of its last measurement:
//
//	meter := machineload.New(machineload.Options{})
//	load := meter.Measure() // CPU, Memory and Network are shares from 0 to 1
//
// A storage node and a worker send the load with their heartbeats. The control plane starts and stops workers by it, as
// the Master of DPP does (DPP, section III-B1).
//
// # What is measured
//
// Where the process runs under a limit of control groups (version 2), its share of the limit counts: cpu.max and
// memory.max of its own group. Otherwise the shares are those of the machine: /proc/stat and /proc/meminfo. The
// network's share is that of the busiest interface in its busier direction; an interface whose rate the kernel does
// not know has no share, and the loopback interface does not count.
//
// # Concurrency
//
// A Meter is safe for concurrent use.
//
// # Errors
//
// There are none: a value that the kernel does not report is 0, which means not known.
package machineload

// Package machineload measures how much of its machine a process uses: processors, memory, network.
//
// # Overview
//
// A [Meter] compares the kernel's counters of this process with those of its last measurement:
//
//	meter := machineload.New(machineload.Options{})
//	load := meter.Measure() // CPU, Memory and Network are shares from 0 to 1
//
// A storage node and a worker send the load with their heartbeats. The control plane starts and stops workers by it, as
// the Master of DPP does (DPP, section III-B1). Each Worker of DPP has a machine of its own. Here other processes may
// share the machine, and what they use says nothing about whether a worker is needed.
//
// # What is measured
//
// The processor time is that of this process, as a share of the processors that the process may use, or of the limit of
// its control group (version 2, cpu.max) where that is less. The memory is the resident memory of this process, without
// the pages of files that the kernel can drop, as a share of the machine's memory or of the group's memory.max.
//
// The kernel does not count network bytes by process. A process cannot have received more bytes than it has read, nor
// more than the interfaces received, so the lesser of the two rates counts, and likewise for sent bytes. A process that
// reads local files beside another process's traffic has a greater share by this measure than it uses. The network's
// share is that of the busiest interface in its busier direction; an interface whose rate the kernel does not know has
// no share, and the loopback interface does not count.
//
// # Concurrency
//
// A Meter is safe for concurrent use.
//
// # Errors
//
// There are none: a value that the kernel does not report is 0, which means not known.
package machineload

// Package roofline compares workloads with the machine's memory: how near the throughput of preprocessing comes to
// that of a plain copy.
//
// # What is measured
//
// [Copy] measures the runtime's memmove between buffers much larger than the caches, one pair a thread: bytes read
// and bytes written, added. A workload (package bench/rm) reads its column chunks and writes its tensors. Its share
// of the roofline is (bytes in + bytes out) a second over the copy's (bytes read + bytes written) a second, both
// with the same number of threads and taken in turn, so that a machine that is busy at the moment slows both.
//
// # Errors
//
// Errors are those of bench/rm.
package roofline

// Package placement compares where preprocessing can be placed: the same partitions and the same pipeline, with the
// work done by other machines' parts each time, and the bytes that cross each link counted.
//
// # What is measured
//
//	in-storage  the drive that holds the partitions preprocesses them; the node sends the tensors on
//	node-cpu    a plain drive; the storage node's CPU reads and preprocesses
//	card        a plain drive; the node reads, and stores windows in a drive without flash, over NVMe/TCP (Piper)
//	pool        a plain drive; its node serves ranges over HTTP, and a worker without data reads and preprocesses (DPP)
//	trainer     as pool, but the trainer's own CPU reads and preprocesses, so that no tensors travel
//
// [Run] makes a data set, and lets each mode make all its mini-batches once to count bytes and to compare the
// mini-batches, which must be the same in every mode, and then again for Options.Time to measure. The storage node,
// the worker and the trainer are parts of one process that speak HTTP over loopback, with package host/source where
// they read; drives are software. So the bytes are those that real machines would move, and the times are those of
// this machine: all parts share its cores, and a link costs as much as loopback.
//
// Bytes of flash are those of NVMe Read commands and of moves inside the drive; bytes to and from a drive's memory are
// the drive's own counters, result blocks and the program included; bytes of HTTP are those of bodies. The
// CPU seconds that the engine of a software drive uses are left out of cpu_rows_per_second, since a drive has its own
// processors: that is a model, and Result.Notes say so.
//
// # Errors
//
// [ErrOptions] for options that cannot be measured; [ErrDiffers] if a mode makes other mini-batches. Other errors
// name the mode.
//
// # Debugging
//
// Compare Result.Links of two modes to find the part that reads more than it needs.
package placement

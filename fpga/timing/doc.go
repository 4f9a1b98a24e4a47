// Package timing is the model of a SmartSSD-class drive: cycles, bandwidths and watts, by unit and by mini-batch.
//
// # Overview
//
// A [Workload] is the cost of a row (values decoded, hashed, logged, bucketized; bytes in and out). A [Device] is a
// clock, bandwidths (P2P, device memory, output, PCIe, network), and the elements of each unit with lanes, initiation
// interval and latency. [OfImage] takes clock and units of an image's parameters. [Device.Batch] returns the time of
// each stage for a mini-batch. [Times.Period] is the time between two mini-batches: with double buffers the slowest
// stage's, else the sum. [Times.Bottleneck] names the slowest stage.
//
// A [Pacing] makes the drives of a process take the model's time. Each drive counts the [Work] of its executions, and
// its [Pacer] says when an execution ends at the earliest ([Device.Times] of that work). A drive that has two commands
// at a time, on a machine that is fast enough, has the throughput of the model. The output to the host does not count,
// as in a plan: the drive is on the trainer's machine. The latency of a single command, which fills the stages one
// after the other, is not modelled. Times may be dilated: whatever reads [Pacing.Clock] then measures the model's
// rates.
//
// The regions of a drive ([Pacing.NewPacers]) have units of their own, and share the P2P link from the flash and the
// device memory. While several regions have work for one of these, each region gets a share of its bandwidth in
// proportion to the region's weight. The model does not check whether so many regions fit a board.
//
// # Sources
//
// The constants are PreSto's where the paper states them (223 MHz, 25 W), and assumptions where it does not (3.0 GB/s
// of P2P, 80 % of DDR4-2400's 19.2 GB/s). One is fitted: [FittedOutput], 2.0 GB/s from device memory to the host, was
// chosen so that Extract takes the share of the time that the paper reports. That share is therefore no evidence for
// the model, and other figures come near it, too: 1.5 to 2.5 GB/s give 35 to 45 %, an initiation interval of 6 in every
// unit gives 44 %. A public benchmark of the board measured 2.2 GB/s on average over P2P ([SmartSSDMeasuredP2P]). The
// figures of an image have their own sources (package image). The model has not been compared with a drive; every
// report that uses it says so.
//
// The model has stages for decoding, Bucketize, SigridHash and Log. Other operators are taken to keep up with their
// neighbours. Ordinary reads and writes of a host beside the computation are not in it.
//
// # Concurrency
//
// The model is pure functions over values. A Pacing and its pacers are safe for concurrent use.
//
// # Errors
//
// [ErrMode], and [SlowHostError]: the machine has been slower than the model on the whole, or by more than a second of
// its time, or four slices, that it has not caught up with. An error of the pacing fails every later execution of the
// process's drives.
//
// # Debugging
//
// The package's tests pin the stage times of RM5, and compare an image's with figures computed by hand. RM5's share of
// Extract (40.4 %; the paper's mean over five models is 40.8 %) shows only that the fit has not moved.
package timing

// Package timing is the model of a SmartSSD-class drive: cycles, bandwidths and watts, by unit and by mini-batch.
//
// # Overview
//
// A [Workload] is the cost of a row (values decoded, hashed, logged, bucketized; bytes in and out). A [Device] is a
// clock, three bandwidths, and the number of processing elements of each unit. [Device.Batch] returns the time of each
// stage for a mini-batch; the stages run one after the other (PreSto's measured latency) or overlap (throughput: the
// slowest stage bounds it, and [Times.Bottleneck] names it).
//
// The constants are PreSto's where the paper states them (223 MHz, 25 W), and assumptions where it does not (3.0 GB/s
// of P2P, 80 % of DDR4-2400's 19.2 GB/s). One is fitted: [FittedOutput], 2.0 GB/s from device memory to the host, was
// chosen so that Extract takes the share of the time that the paper reports. That share is therefore no evidence for
// the model. A public benchmark of the board measured 2.2 GB/s on average over P2P ([SmartSSDMeasuredP2P]). The model
// has not been compared with a drive; every report that uses it says so.
//
// # Concurrency
//
// Pure functions over values.
//
// # Debugging
//
// The package's test pins the stage times of RM5. Its share of Extract (40.4 %, the paper's mean over five models is
// 40.8 %) shows only that the fit has not moved.
package timing

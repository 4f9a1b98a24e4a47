// Package exploration searches the designs of a drive's FPGA: how many elements of each unit, at which clock, fit the
// board, and which of them has the most rows/s of a workload.
//
// # Overview
//
// [Explore] tries every number of elements of the four units that the model of package timing knows, at every clock
// that is asked for. The area of an element is that of the units of fpga/rtl which it needs, as their synthesis has it;
// initiation interval, latency and the decoder's lanes are those of their descriptions. The rows/s are the model's. The
// [Report] has the best design, the designs that no smaller one matches, and PreSto's beside them. [Report.Picture]
// draws it.
//
// # What is not in it
//
// Watts: no tool of this project estimates power. The area has no memory controllers, movers of data and double
// buffers, and of the decoder only the runs of levels and indices, and the lengths of lists: fpga/rtl has no other part
// of it. So an area is less than a whole design takes. Whether a clock is reached only place and route can say: a clock
// is one that is requested.
//
// # Concurrency
//
// Functions are pure.
//
// # Errors
//
// [ErrOptions] says which option is wrong. Other errors are of the figures of fpga/rtl.
//
// # Debugging
//
// The tests compute designs by hand.
package exploration

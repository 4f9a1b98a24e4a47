// Package pipeline measures the whole way of mini-batches: from Parquet files on a drive to a trainer.
//
// # What is measured
//
//	cpu            the cpu engine alone, over the files: the mini-batches are given up at once
//	drive          the drive alone: a drive whose flash is a file in the page cache, without a trainer
//	trainer        a job over that drive in this process (packages trainmgr and trainmgr/local)
//	launcher-*     a job of the service: a control plane and a storage node in processes of their own, and a launcher
//	               in this process (package trainmgr/remote), over a unix socket, TCP on loopback, and mutual TLS on it
//	numpy-*        the same with the Python package in a process of its own, whose tensors become NumPy arrays
//	torch-*        the same with tensors of PyTorch
//	raw-*          two connections that copy blocks as large as a mini-batch, both ends in this process
//
// [Run] makes the files once for each workload, copies them to the drives, and lets every way deliver all mini-batches
// once. Each way must deliver every mini-batch of the plan once and the same tensors as the way before, and the nodes
// must have counted the bytes of as many frames as came. Then the ways take turns, [Options].Rounds times. A turn
// begins a job, and its clock starts with the first mini-batch. Package steadyrate leaves out the beginning and decides
// how long the turn takes. Several epochs may pass in one turn: the end of an epoch, and its acknowledgement, is a part
// of the way.
//
// Everything runs on one machine, so that all processes share its cores. The CPU time of each process says what it
// would need on a machine of its own; of the ways within this process all of it is the trainer's.
//
// # Errors
//
// [ErrOptions] for options that cannot be measured, and [ErrDiffers] if a way delivers other mini-batches than it
// should. Other errors name the workload and the way. A way that this machine cannot have, for example without PyTorch,
// is not an error: Report.LeftOut says why.
//
// # Debugging
//
// Select two neighbouring ways with Options.Ways and compare their CPU times.
package pipeline

// Package host is the storage side on one node: PreSto's preprocess manager and its workers, over the drives of this
// machine.
//
// # Overview
//
// A [Drive] is a device with the partitions that lie on it: members of a tar volume, files of a mounted file system on
// the drive, or files that are given as a read-only drive. Where a drive does not compute, the node's CPU runs the same
// kernels over the drive's blocks, and every report says so.
//
// A [Manager] owns the drives and implements api.Storage. It describes what the drives hold, lowers a job's pipeline
// once and gives the program to every drive ([Manager.Prepare]), measures P of a drive ([Manager.Measure]), and opens
// streams of splits ([Manager.Open]), from which the training side pulls mini-batches.
//
// The drives may hold several data sets. A job that names its manifest (api.Job.Manifest) is over those partitions
// alone, and other nodes may hold some of them. A job that does not name it is over every partition here, which must
// then have one schema. [Manager.Inventory] lists what the drives hold. Volumes grow ([Manager.Rescan]); drives come
// and go ([Manager.AddDrive], [Manager.RemoveDrive]). A partition whose end reads differently when a split begins or
// ends is refused ([ErrChanged]).
//
// A drive of reach any ([OpenElsewhere]) holds no partition: this machine's CPU, or a drive without flash that this
// host feeds, makes its splits from partitions that an [Elsewhere] reads from other nodes or from stores.
//
//	Manager        drives and jobs
//	  Drive        a device and its partitions; one processor a job
//	    stream     one split: names the processor's mini-batches, says which are fragments of one, and mixes rows where
//	               the plan asks for it
//
// # Concurrency
//
// A Manager is safe for concurrent use. A stream has one user. Streams must be closed, and mini-batches released,
// before Manager.Close; those of a job before Finish, those of a job on a drive before Restart, and those of a drive
// before RemoveDrive.
//
// # Errors
//
// [ErrSchema] says that the schemas of partitions differ, [ErrChanged] that a partition differs from the job's
// manifest, [ErrNotHeld] that a partition lies elsewhere, and [ErrDigest] that the two sides name a job differently.
// api.ErrUnknownDrive, api.ErrUnknownJob and api.ErrBusy are faults of the caller. Other errors come from a drive or a
// partition, and are wrapped with the drive's name.
//
// # Debugging
//
// Options.Logger has the drives that are opened, the jobs that are prepared, and P as it is measured. Options.Rates is
// the file in which P is kept. [Manager.Report] has the times of move, decode, transform and fetch, and the drive's own
// counters.
package host

// Package host is the storage side on one node: PreSto's preprocess manager and its workers, over the drives of this
// machine.
//
// # Overview
//
// A [Drive] is a device with the partitions that lie on it: whole files of a tar volume, or existing files given as a
// read-only drive. A drive that does not compute is used too: the node's CPU runs the same kernels over its blocks, and
// every report says so. A [Manager] owns the drives and implements api.Storage: it tells what they hold, lowers a job's
// pipeline once and hands the program to every drive ([Manager.Prepare]), measures P of a drive ([Manager.Measure]),
// and opens splits ([Manager.Open]), whose mini-batches the training side pulls.
//
// The drives may hold several data sets. A job that names its manifest (api.Job.Manifest) is over those partitions
// alone, of which other nodes may hold some; one that does not is over everything here, which must then agree.
// [Manager.Inventory] tells what there is. Volumes grow ([Manager.Rescan]); drives come and go ([Manager.AddDrive],
// [Manager.RemoveDrive]); a partition whose footer reads differently when a split begins or ends is refused
// ([ErrChanged]).
//
//	Manager        drives, jobs
//	  Drive        device + partitions; one processor a job
//	    worker     one open split: pulls mini-batches from the processor, names them, mixes rows where the plan asks
//
// # Concurrency
//
// A Manager is safe for concurrent use. A stream has one user. Closing a Manager closes its drives; streams must be
// closed, and mini-batches released, before: of a job for Finish, of a job on a drive for Restart, of a drive for
// RemoveDrive.
//
// # Errors
//
// [ErrSchema] says that partitions disagree, [ErrChanged] that one is not what a job's manifest says, [ErrNotHeld] that
// it is elsewhere, [ErrDigest] that the two sides name a job differently; api.ErrUnknownDrive, api.ErrUnknownJob and
// api.ErrBusy are the callers'. What a drive or a partition did wrong comes wrapped, with the drive's name.
//
// # Debugging
//
// Options.Logger tells drives opened, jobs prepared and P measured. P that is kept
// is in the file Options.Rates. [Manager.Report] has the time in move, decode,
// transform and fetch, and the drive's own counters.
package host

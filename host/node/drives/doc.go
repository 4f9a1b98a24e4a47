// Package drives keeps the drives of a storage node open, healthy, and at the FPGA image that the node's configuration
// names.
//
// # Overview
//
// A [Set] has one supervisor for each drive of the configuration. A supervisor opens its drive, hands it to the
// node's host.Manager, asks it every second how busy it was, and reads its SMART log every half minute. A drive that
// stops answering is closed and opened again after a backoff. A drive that answers but failed a split (its connection
// broke, or a worker panicked) keeps its place: the processors of its jobs are made again, because the drive may have
// forgotten its state for this host.
//
// A region of a drive is a drive here: it is opened, probed, repaired, drained and switched to an image alone. The
// regions of a drive in a file share the open file, which is closed with the last of them.
//
// While a drive is not ready, the node's open splits (package splits) refuse requests for it, with the reason.
//
// [Set.RollOut] compares the images that the drives run with the wanted image, and rolls that out (package deploy),
// one drive after another, when a drive has drifted.
//
//	opening ──> ready <──> loading image
//	               │  \__ drained: ready, but it takes no new splits
//	failed: WHY <──┘
//
// # Concurrency
//
// A Set is safe for concurrent use. Set.mu guards the supervisors' state; each supervisor is one goroutine, and
// RollOut is another. [Set.Wait] returns when the supervisors have ended.
//
// # Errors
//
// errorcode.ErrUnavailable for a drive that is not open, api.ErrUnknownDrive for a name that no drive has.
//
// # Debugging
//
// The log has every change of a drive's state, every backoff, and every step of a rollout. [Set.Statuses] has the state
// as it is now.
package drives

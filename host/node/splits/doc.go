// Package splits holds the open splits of a storage node: it makes their mini-batches on the drives, ahead of the
// requests, and buffers those that were made and not yet taken.
//
// # Overview
//
// The order of requests makes the work. The first [Table.Get] of a split opens it: a goroutine opens a stream on the
// split's drive and makes mini-batches ahead of the requests, up to the number that the latest request named, as far as
// the bounds in bytes of the node, the job and the owner allow. A request for a mini-batch that was made returns at
// once; any other waits for it. [Table.Done] reports whether a response was fully written. An unwritten mini-batch
// stays buffered for the next request.
//
// The numbers of requests, and of what is buffered, are those of fragments (dataset.Plan): a mini-batch is here what a
// split has of it, and two splits may make fragments of one mini-batch.
//
// A request for a mini-batch that was taken before opens the split again at that mini-batch. A drive has few streams: a
// split that has nothing to make closes its stream when another split of the job waits for one.
//
// # Concurrency
//
// A Table is safe for concurrent use: Table.mu guards every open split and all accounts. The goroutine of an open
// split is the only user of its stream, and uses it without the lock; openSplit.nextStep alone decides what the
// goroutine does. [Table.Finish], [Table.RefuseDrive] and [Table.Close] end splits, cut off the responses that are
// being written, and return when both have ended, so that the caller may close the processors that lent the
// mini-batches.
//
// # Errors
//
// [ErrDraining] and [ErrStopped] ask the client to come again or to go elsewhere, [ErrOwner] refuses an owner that has
// too many splits open, and api.ErrUnknownJob a job that is being finished. Other errors are the drive's: every waiting
// request gets them, and Options.Failed. A panic while a mini-batch is made is a *processor.PanicError.
//
// # Debugging
//
// Options.Log has every split that is opened (at debug level), that fails, or that is closed because no client asks
// for it.
package splits

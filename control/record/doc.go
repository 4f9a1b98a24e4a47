// Package record holds the checked specification of a job, the names of its phases, and the form in which a job, its
// editions and its tokens are kept. It is pure: it stores nothing and calls nothing.
//
// # Overview
//
// [Check] makes a [Spec] of a submission and fills in defaults. [Phase] is the phase of a job; package lifecycle has
// the table of the phases that follow. [Submission], [State] and [Edition] are the JSON of a job's records, and [Key]
// and [DataKey] return their keys. [PooledWorker] is the JSON of a worker that is being started. [Pack] compresses the
// data of an edition and cuts them into pieces that etcd accepts; [Unpack] is its inverse. [WrapToken] seals a
// checkpoint token under the cluster's key; [UnwrapToken] opens it.
//
// # Concurrency
//
// The package holds values and functions of them, and shares nothing.
//
// # Errors
//
// The error of a specification that can never be accepted wraps [ErrSpec]. The error of bytes that are no token, or
// that are sealed under another key, wraps dataset.ErrToken. Unpack refuses data that are not whole.
//
// # Debugging
//
// Records are JSON, so that `etcdctl get --prefix /millrace/v1/job/` shows them; only pieces and bitmaps are not.
package record

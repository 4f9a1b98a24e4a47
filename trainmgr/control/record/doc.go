// Package record holds the checked specification of a job, the names of its phases, and the form in which a job, its
// editions and its tokens are kept. It is pure: it stores nothing and calls nothing.
//
// # Overview
//
// [Check] makes a [Spec] of a submission, with defaults filled in. [Phase] says where a job stands; package lifecycle
// has the table of what follows. [Submission], [State] and [Edition] are the JSON of a job's records, [Key] and
// [DataKey] their keys; [Pack] compresses what an edition is made of and cuts it into pieces that etcd takes,
// [Unpack] is its inverse. [WrapToken] seals a checkpoint token under the cluster's key, [UnwrapToken] opens it.
//
// # Concurrency
//
// Values, and functions of them; nothing is shared.
//
// # Errors
//
// An error of a specification that can never be right wraps [ErrSpec]. An error of bytes that are no token, or are
// sealed under another key, wraps dataset.ErrToken. Unpack refuses data that are not whole.
//
// # Debugging
//
// Records are JSON: `etcdctl get --prefix /millrace/v1/job/` reads, but for pieces and bitmaps.
package record

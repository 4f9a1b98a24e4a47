// Package record is what a control plane knows of a job apart from what goes on: the specification that was checked,
// the phases, and the form in which a job, its generations and its tokens are kept. Pure: it stores nothing and asks
// nobody.
//
// # Overview
//
// [Check] makes a [Spec] of what was submitted, with defaults filled in. [Phase] says where a job stands and what may
// follow. [Submission], [State] and [Generation] are the JSON of a job's records, [Key] and [DataKey] their keys;
// [Pack] compresses what a generation is made of and cuts it into pieces that etcd takes, [Unpack] is its inverse.
// [WrapToken] seals a checkpoint token under the cluster's key, [UnwrapToken] opens it.
//
// # Concurrency
//
// Values, and functions of them; nothing is shared.
//
// # Errors
//
// [ErrSpec] is wrapped by what can never be right of a specification; a token that is no token, or is sealed otherwise,
// wraps dataset.ErrToken. What Unpack refuses is not whole.
//
// # Debugging
//
// Records are JSON: `etcdctl get --prefix /millrace/v1/job/` reads, but for pieces and bitmaps.
package record

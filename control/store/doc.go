// Package store keeps the control plane's durable state in etcd: in one member embedded in this process, in a cluster
// of three or more embedded members, or in an etcd that runs elsewhere.
//
// # Overview
//
// [Open] starts or dials etcd. [Store.Campaign] waits until this member leads and returns a [Term]. Every write of a
// term is one transaction guarded by the create revision of the term's leader key, the fence: a later write of a leader
// that was replaced is refused with [ErrFenced]. A later term has a greater fence, even if its etcd was started empty
// after an earlier etcd was lost.
//
// A [Journal] commits the changes of many callers together: a caller makes a change, waits, and is woken when the
// transactions that hold its change are on the disks of a majority. A key that several callers changed is written once.
//
// # What is kept
//
// Keys live under one prefix ([Options.Prefix]); below it, "leader/" belongs to the election, "format" names the
// version of the layout, and "fences" says where fences begin. Values stay small: a bitmap of 1,024 splits, a job's
// document; nothing is written per split.
//
// # Members
//
// [Store.AddMember], [Store.RemoveMember] and [Store.Promote] change the members of the cluster that the embedded etcds
// form. A member is added as etcd's learner, without a vote.
//
// # Concurrency
//
// Store, Term and Journal may be used from any number of goroutines. A Journal's source is called from its own
// goroutine. Close ends every goroutine before it returns.
//
// # Errors
//
// [ErrFenced]: the term is over, and another member leads or none does. [ErrNoSpace]: etcd's quota is used up, and it
// takes no writes until an operator makes room (docs/operations.md); reads go on. [ErrDamaged]: a member's files were
// changed by another program, or by its disk. [ErrFormat]: another build wrote the data. [ErrMembers]: the members
// cannot be changed that way. [ErrAway]: etcd has no leader now; the request may have been carried out, and may be
// repeated.
//
// # Debugging
//
// etcd's own log comes through Options.Logger: its errors as warnings, its warnings as debug lines, nothing below.
// Options.ClientURL lets etcdctl in: `etcdctl get --prefix /millrace/`.
package store

package splits

import (
	"fmt"

	"github.com/millrace/millrace/sdk/dataset"
)

// Held is the number and the bytes of the fragments that were made and not given back.
type Held struct{ Fragments, Bytes int64 }

// add counts a fragment in (sign 1) or out (sign -1).
func (h *Held) add(sign, bytes int64) {
	h.Fragments += sign
	h.Bytes += sign * bytes
}

// accounts has the memory that the mini-batches of a node take, in all, by job and by owner. Table.mu guards it.
type accounts struct {
	nodeBytes, jobBytes, ownerBytes int64 // bounds; ownerBytes 0: none
	ownerSplits                     int   // bound of an owner's open splits; 0: none

	total  Held
	jobs   map[dataset.Digest]*Held
	owners map[string]*share // those that have a split open or something held
}

// share is an owner's part of a node: its open splits and its mini-batches.
type share struct {
	Held
	splits int // open
}

func newAccounts(o *Options) accounts {
	return accounts{
		nodeBytes: o.NodeBytes, jobBytes: o.JobBytes, ownerBytes: o.OwnerBytes, ownerSplits: o.OwnerSplits,
		jobs: map[dataset.Digest]*Held{}, owners: map[string]*share{},
	}
}

// openSplit counts a split in for its owner, or refuses it with ErrOwner. An empty owner has no account.
func (a *accounts) openSplit(owner string) error {
	if owner == "" {
		return nil
	}
	o := a.share(owner)
	if a.ownerSplits > 0 && o.splits >= a.ownerSplits {
		return fmt.Errorf("%w: %s has %d (limits.owner_splits)", ErrOwner, owner, o.splits)
	}
	o.splits++
	return nil
}

// closeSplit counts a split out for its owner.
func (a *accounts) closeSplit(owner string) {
	if o := a.owners[owner]; o != nil {
		o.splits--
		a.dropIfEmpty(owner, o)
	}
}

// share returns an owner's account. An owner whose splits are closed gets a new one when a mini-batch is given back.
func (a *accounts) share(owner string) *share {
	o := a.owners[owner]
	if o == nil {
		o = &share{}
		a.owners[owner] = o
	}
	return o
}

func (a *accounts) dropIfEmpty(owner string, o *share) {
	if o.splits == 0 && o.Fragments == 0 {
		delete(a.owners, owner)
	}
}

// add counts a mini-batch in (sign 1) or out (sign -1).
func (a *accounts) add(job dataset.Digest, owner string, sign, bytes int64) {
	a.total.add(sign, bytes)
	held := a.jobs[job]
	if held == nil {
		held = &Held{}
		a.jobs[job] = held
	}
	held.add(sign, bytes)
	if held.Fragments == 0 {
		delete(a.jobs, job)
	}
	if owner == "" {
		return
	}
	o := a.share(owner)
	o.add(sign, bytes)
	a.dropIfEmpty(owner, o)
}

// full reports whether nothing more may be made ahead for an owner's job.
func (a *accounts) full(job dataset.Digest, owner string) bool {
	held, o := a.jobs[job], a.owners[owner]
	return a.total.Bytes >= a.nodeBytes ||
		held != nil && held.Bytes >= a.jobBytes ||
		o != nil && a.ownerBytes > 0 && o.Bytes >= a.ownerBytes
}

package upkeep

import (
	"slices"
	"time"
)

// maxReturns is the most returned leases that are kept for a node that has not confirmed them.
const maxReturns = 4096

// returns lists the leases on a node's drives that came back unfinished, in the order of their return.
type returns struct {
	last uint64 // the number of the last returned lease
	list []returned
}

type returned struct {
	number, lease uint64
	at            time.Time
}

// add appends a lease that came back.
func (b *returns) add(lease uint64, now time.Time) {
	b.last++
	b.list = append(b.list, returned{b.last, lease, now})
	if len(b.list) > maxReturns {
		b.list = slices.Delete(b.list, 0, len(b.list)-maxReturns)
	}
}

// after forgets the leases up to number seen, which the node has confirmed, and those that came back longer ago than
// keep. It returns the remaining leases and the number of the last one.
func (b *returns) after(seen uint64, keep time.Duration, now time.Time) (leases []uint64, upTo uint64) {
	b.list = slices.DeleteFunc(b.list, func(r returned) bool { return r.number <= seen || now.Sub(r.at) > keep })
	for _, r := range b.list {
		leases = append(leases, r.lease)
	}
	return leases, b.last
}

// LeaseReturned records that a lease on a drive of a node came back unfinished: the node must refuse its tickets.
func (k *Keeper) LeaseReturned(node string, lease uint64, now time.Time) {
	if n := k.nodes[node]; n != nil {
		n.returned.add(lease, now)
	}
}

// Returned lists the leases whose tickets a node must refuse, without the leases up to number seen, which the node has
// confirmed. The node confirms number upTo with its next heartbeat.
func (k *Keeper) Returned(node string, seen uint64, now time.Time) (leases []uint64, upTo uint64) {
	n := k.nodes[node]
	if n == nil {
		return nil, seen
	}
	return n.returned.after(seen, k.config.KeepReturned, now)
}

// Package fleet tracks the storage nodes of a cluster: which nodes live, which drives and partitions they have, and
// which nodes were refused and why.
//
// # Overview
//
// A [Fleet] is a pure machine. [Fleet.Beat] takes a node's heartbeat, and [Fleet.Tick] looks for nodes that fell
// silent. Both take the time as an argument and return [Event]s, to which the control plane reacts. [Fleet.Select]
// makes a data set of the partitions that nodes hold, [Fleet.Records] is the operator's view.
//
// An operator names a node; every start of its agent is a new incarnation. A beat of an incarnation that a later one
// replaced is refused, since two agents must not share a name. A drive is identified by its UUID if it has one. The
// node that claimed a drive first keeps it until that node is dead; another node that claims the drive meanwhile is
// refused. A node may list a drive of several regions once for each: the regions share the UUID, and a partition on
// their flash is one copy. All of them are one node's, because a drive has one appender.
//
// A drive of a status is any worker. A worker of reach held makes splits of the partitions that it lists. A worker of
// reach any lists none and makes any split; it reads a partition from the places that [Fleet.Locate] names: a drive of
// a live node that holds the partition, or a URL that an agent announces among its sources. A partition with a URL can
// be part of a data set although no drive holds it.
//
// Times are those of the caller's monotonic clock. A node's own clock is shown and never used: clocks that differ by
// minutes change only [apiv1.NodeRecord].clock_skew_seconds.
//
// # Concurrency
//
// A Fleet has one owner. An owner that shares the Fleet among goroutines guards it by a lock. The partitions and
// schemas that it returns are shared: do not change them.
//
// # Errors
//
// The error of a node that is refused wraps [ErrRefused]. The error of partitions that make no data set wraps
// [ErrSelect], or [ErrNotYet] if the same partitions may make a data set in a moment.
//
// # Debugging
//
// `millrace nodes list` prints Records; a refused node is listed with the reason.
package fleet

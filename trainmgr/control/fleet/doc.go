// Package fleet tracks the storage nodes of a cluster: which nodes live, which drives and partitions they have, and
// which nodes were refused and why.
//
// # Overview
//
// A [Fleet] is a pure machine. [Fleet.Beat] takes a node's heartbeat, [Fleet.Tick] looks for nodes that fell silent;
// both take the time as an argument and return [Event]s, which the control plane carries out. [Fleet.Select]
// makes a data set of the partitions that nodes hold, [Fleet.Records] is the operator's view.
//
// A node is named by its operator; an agent that starts has a new incarnation. A beat of an incarnation that another
// has replaced is refused: two agents must not share a name. A drive is known by its UUID wherever it has one; the node
// that claimed it first keeps it until that node is dead, and another node that claims it meanwhile is refused.
//
// A drive of a status is any worker. A worker of reach held makes splits of the partitions that it lists. A worker of
// reach any lists none and makes any split; it reads a partition from where [Fleet.Locate] says: from a drive of a live
// node that holds it, or from a URL that an agent was given and announces among its sources. A partition of a URL makes
// a data set although no drive holds it.
//
// Time is that of the caller's monotonic clock. A node's own clock is shown, never used: clocks that are minutes apart
// change nothing but [apiv1.NodeRecord].clock_skew_seconds.
//
// # Concurrency
//
// A Fleet has one owner. An owner that shares the Fleet among goroutines guards it by a lock. The partitions and
// schemas that it returns are shared: do not change them.
//
// # Errors
//
// An error that says why a node is not taken wraps [ErrRefused]; one that says why partitions make no data set wraps
// [ErrSelect], or [ErrNotYet] where that may change in a moment.
//
// # Debugging
//
// `millrace nodes list` prints Records; a refused node is listed with the reason.
package fleet

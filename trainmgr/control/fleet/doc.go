// Package fleet knows the storage nodes of a cluster: which live, which drives and partitions they have, who was
// refused and why.
//
// # Overview
//
// A [Fleet] is a pure machine. [Fleet.Beat] takes a node's heartbeat, [Fleet.Tick] looks for nodes that fell silent;
// both take the time as an argument and return [Event]s: what the control plane has to do about it. [Fleet.Select]
// makes a data set of the partitions that nodes hold, [Fleet.Records] tells an operator.
//
// A node is named by its operator; an agent that starts has a new incarnation. A beat of an incarnation that another
// has replaced is refused: two agents must not share a name. A drive is known by its UUID wherever it has one; the node
// that claimed it first keeps it until it has been found dead, and whoever claims it meanwhile is refused in words.
//
// Time is that of the caller's monotonic clock. A node's own clock is shown, never used: clocks that are minutes apart
// change nothing but [apiv1.NodeRecord].clock_skew_seconds.
//
// # Concurrency
//
// None: a Fleet has one owner, who locks. What it returns of partitions and schemas is shared and not to be changed.
//
// # Errors
//
// [ErrRefused] wraps why a node is not taken, [ErrSelect] why partitions do not make a data set.
//
// # Debugging
//
// `millrace nodes list` prints Records; a refused node is listed with the reason.
package fleet

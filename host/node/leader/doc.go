// Package leader is what a storage node has to do with the control plane's leader: it beats to it, and knows when one was replaced.
//
// # Overview
//
// A [Beater] tells the leader, every second or as the leader asks, what the node is, has and does. It tries the members that it was told of in turn, follows
// the word of one that does not lead, and learns of members that it was not told of. The inventory goes along when the leader does not have it.
//
// The [Fence] is the latest leader's: every call of a leader and every answer to a heartbeat carries one, and what comes with a lower one is refused. It is kept
// over restarts.
//
// # Concurrency
//
// A Fence is safe for concurrent use, and so is Beater.Now. A Beater's other methods have one caller.
//
// # Errors
//
// [ErrOld] for a leader that was replaced. A heartbeat that nobody took is no error of the node, which serves all the same: it is logged when that begins and
// when it has ended.
//
// # Debugging
//
// The log has every leader, and why no heartbeat is taken.
package leader

// Package heartbeat reports a storage node's identity, inventory and work to the control plane's leader, and refuses
// leaders that a later leader has replaced.
//
// # Overview
//
// A [Sender] sends a heartbeat to the leader every second, or as often as the leader asks. It tries the members of the
// control plane that it knows in turn. A member that does not lead names the leader, and the Sender goes there; it also
// remembers members that no configuration named. A heartbeat carries the node's inventory only when the leader does not
// have it.
//
// The [Fence] is the term of the latest leader that the node has seen. Every call of a leader and every answer to a
// heartbeat carries a fence, and the node refuses a fence below the latest. The Fence is kept over restarts.
//
// # Concurrency
//
// A Fence is safe for concurrent use, and so is [Sender.SendSoon]. The other methods of a Sender have one caller.
//
// # Errors
//
// [ErrReplaced] refuses a leader that was replaced. A heartbeat that no member accepts does not stop the node, which
// goes on serving; the log says when that begins and when it has ended.
//
// # Debugging
//
// The log has every new leader, and the reason why no member accepts a heartbeat.
package heartbeat

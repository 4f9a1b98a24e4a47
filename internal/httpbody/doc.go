// Package httpbody bounds the time and the memory that the bodies of requests may take.
//
// # Overview
//
// An http.Server has a bound of its own for the time of headers, but bounds the time of bodies only together with
// everything else that a connection reads, and that includes uploads of hours and calls that wait for half a minute.
// [Within] stands before a handler whose requests are small: a peer that sends one byte an hour would hold a
// connection, of which a server has a limited number.
//
// A [Budget] is the memory that the calls of a server may take together, and each peer alone. [Budget.Messages]
// stands before a Connect service: it reads the message of a call, unpacks it, finds out how much memory the decoded
// message will take, and passes the call on when there is room for all of that. Without a budget a message of 62 KB
// can become gigabytes, for two reasons: gzip packs a thousand to one, and an empty message in a list is two bytes on
// the wire and more than a hundred in memory. A call whose message is too large, packed too tightly or more than its
// peer may hold is refused with resource_exhausted before it is decoded; a call that finds the budget taken waits for
// a few seconds first.
//
// # Concurrency
//
// Any number of requests may be served at once, each by its goroutine.
//
// # Errors
//
// A body that comes too late fails to be read with an error that is os.ErrDeadlineExceeded, and the connection ends
// with the request. Refusals are Connect's errors, in the protocol in which the call came, and wrap [ErrMemory],
// [ErrTooLarge] or [ErrRatio].
//
// # Debugging
//
// A deadline holds until the body was read to its end, or to an error; the time that a handler takes after that is
// not bounded. Every refusal is a line of the log, a few a second at most; [Budget.Used] returns how much is taken.
package httpbody

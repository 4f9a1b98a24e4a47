// Package ticket decides to which clients a storage node gives the mini-batches of a lease.
//
// # Overview
//
// The control plane grants leases, and nodes serve mini-batches. Between the two the launcher carries a ticket
// (apiv1.Ticket): the leader's signed statement of the grant. A [Signer] makes a key for the leader's term and signs
// with it; the private half never leaves the Signer. A node learns the public half with the answer to its heartbeat
// ([Verifier.Learn]), and checks every request for a mini-batch against the ticket that came with it
// ([Verifier.Check]). So a ticket cannot be made from the knowledge of a node, or from messages overheard at a node,
// and leaders and nodes share no secret.
//
// A ticket is good for the fragments of one lease on one drive of one node, as long as the node runs. It is void
//
//	when it has expired             by the leader's clock, as the node learned it last; launchers get another in time
//	when its lease was returned     the leader says so with the next heartbeat
//	when its rank has a later session, of which the node has seen a ticket
//	when the node was started again
//
// and, over TLS, for every client but the holder of the certificate that the ticket names.
//
// # Speed
//
// A signature is verified once (about 60 µs). After that the ticket is known by the text in which the leader wrote it,
// and a check takes a lookup and a few comparisons, and allocates nothing. The same ticket in another text, as with
// unknown fields, is verified every time, and is not remembered twice.
//
// # Concurrency
//
// A Signer and a Verifier may be used from any number of goroutines.
//
// # Errors
//
// [ErrNone] says that a request shows no ticket, or none that a leader signed; [ErrVoid] that the ticket is no longer
// good, or not for this request; [ErrKey] that the node has not learned the key yet, as right after a change of
// leaders: the launcher asks again in a moment.
//
// # Debugging
//
// Every refusal names the lease and the part of the request that does not fit.
package ticket

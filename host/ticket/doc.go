// Package ticket says to whom a storage node gives the mini-batches of a lease.
//
// # Overview
//
// The control plane grants leases, and nodes serve mini-batches; between the two the launcher carries a ticket: what it
// was granted (apiv1.Ticket), signed by the leader. A [Signer] makes a key for the leader's term and signs; the private
// half never leaves it. A node learns the public half with the answer to its heartbeat ([Verifier.Learn]), and checks
// every request for a mini-batch against the ticket that came with it ([Verifier.Check]). So nothing that a node, or
// who listens at a node, knows is enough to make a ticket, and nothing has to be kept secret between leaders and nodes.
//
// A ticket is good for the mini-batches of one lease on one drive of one node, as long as the node runs. It is void
// when
//
//	it has expired            by the leader's clock, as the node heard it last; launchers get another in time
//	its lease has come back   the leader says so with the next heartbeat
//	its rank has a later session, of which the node has seen a ticket
//	the node was started again
//
// and it is good for nobody but the holder of the certificate that it names, where TLS says who asks.
//
// # Speed
//
// A signature is verified once (about 60 µs); then the ticket is known by its text, and a check takes a lookup and a
// few comparisons, and allocates nothing.
//
// # Concurrency
//
// A Signer and a Verifier may be used from any number of goroutines.
//
// # Errors
//
// [ErrNone]: no ticket, or none that a leader signed. [ErrVoid]: a ticket that was good, or is not for this request.
// [ErrKey]: the node has not heard of the key yet, as right after a change of leaders: ask again in a moment.
//
// # Debugging
//
// [Read] shows what a ticket says, whoever signed it. Every refusal names the lease and what does not fit.
package ticket

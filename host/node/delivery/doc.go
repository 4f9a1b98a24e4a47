// Package delivery serves a storage node's mini-batches over HTTP/1.1, the documented binding of NextMiniBatch in
// millrace.proto.
//
// # Overview
//
//	GET /v1/minibatch?job=HEX&epoch=E&drive=NAME&number=N&until=U
//
// answers with fragment N of the plan of the job's epoch, made on the drive: as a frame, or as an Arrow IPC file where
// the request accepts one. Fragments up to U, exclusive, may be made ahead of their requests (package splits). A frame
// is written straight from the drive's memory where that is mapped; the memory is given back when the response was
// written.
//
// A fragment is the part of a mini-batch that lies in one split (dataset.Plan). With boundary partition every
// mini-batch has one fragment, of its own number. A fragment that is not the whole mini-batch has the mini-batch's
// name, says which fragment it is, and has no Arrow IPC file.
//
// Where the node has a control plane, the header Millrace-Ticket must carry the ticket of a lease that covers the
// fragment (package ticket), and nothing is made ahead past that lease.
//
// # Concurrency
//
// A [Server] is safe for concurrent use. [WithPeer] puts a connection into the context of its requests, so that the
// node notices when a client is gone.
//
// # Errors
//
// Every error is answered with its code and status (package errorcode). A client that does not take a response in time
// is cut off: the mini-batch stays buffered for the next request.
//
// # Debugging
//
// The log has refused tickets, at most one a second with the number that were not logged, and, at debug level,
// responses that were not taken whole. Options.Counter has the numbers.
package delivery

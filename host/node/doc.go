// Package node is the agent of a storage node: it owns the node's drives, prepares jobs on them, and serves mini-batches to
// launchers over HTTP.
//
// # Overview
//
// [Start] opens the drives that a [Config] names, over one host.Manager, and listens: Connect's Node service (package host/api/v1), and beside it
//
//	GET /v1/minibatch?job=HEX&epoch=E&drive=NAME&number=N&until=U   one mini-batch
//	GET /v1/partitions/NAME?drive=D                                 a partition's bytes; Range is understood
//	GET /metrics, /readyz
//
// The order of a mini-batch's GETs makes the work (package splits): the first request of a split opens it on its drive, where mini-batches are made ahead of
// the requests, up to number until. A response is written straight from the drive's memory where that is mapped, and given back when it is written.
//
// Where there is a control plane, the header Millrace-Ticket must show the ticket of a lease that covers the mini-batch
// (package ticket).
//
//	Agent        listeners, limits, roles, status, metrics
//	  supervisor   one a drive: opens it, probes it, opens it anew when it fails
//	  runs         open splits and their buffers: package splits
//	  beats        heartbeats to the control plane: package leader
//	  store        partitions on the drives, from outside and from other nodes: package partitions
//
// Without a control plane the node serves whoever prepares jobs on it.
//
// # Concurrency
//
// An Agent is safe for concurrent use. Agent.mu guards what the supervisors know; open splits guard themselves. Close ends every goroutine before it
// returns. Lent mini-batches are released before the processor that lent them is closed: finishing a job, restarting a processor and giving a drive up
// first stop the runs, then cut responses that are being written, then wait for both.
//
// # Errors
//
// Every error that leaves the node has one of Connect's codes, as millrace.proto says: not_found, failed_precondition, data_loss (would fail again),
// resource_exhausted and unavailable (try again), invalid_argument. A configuration's errors name line and column.
//
// A drive that fails (its connection is gone, its worker panicked) fails the splits that run on it, with unavailable; it is opened
// again with a backoff, and its state says so.
//
// # Debugging
//
// The log has job, split, drive and fence. /metrics has what runs, what is buffered, P and the latencies of GETs. Describe (curl -d '{}'
// -H 'Content-Type: application/json' URL/millrace.v1.Node/Describe) tells everything that the control plane is told.
package node

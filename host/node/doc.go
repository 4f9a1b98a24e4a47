// Package node is the agent of a storage node. It keeps the node's drives open, prepares jobs on them, and serves
// mini-batches to launchers over HTTP.
//
// # Overview
//
// [Start] opens the drives that a [Config] names and listens. One port serves Connect's Node service (package
// host/api/v1) and, beside it,
//
//	GET /v1/minibatch?job=HEX&epoch=E&drive=NAME&number=N&until=U   one fragment
//	GET /v1/partitions/NAME?drive=D                                 a partition's bytes, or a Range of them
//	PUT /v1/partitions/NAME?drive=D                                 a new partition for a drive
//	GET /metrics, /readyz
//
// [Run] is Start for a service: it notifies systemd, and drains before it closes.
//
// The [Agent] makes the node's parts. Each part is a package or a small type, has one owner of its data, and gets only
// what it needs of the others:
//
//	drives       opens, probes and repairs the drives, and keeps them at their FPGA image
//	splits       open splits: makes mini-batches ahead of their requests, and buffers them
//	delivery     GET /v1/minibatch: tickets, and writing responses
//	partitions   partitions that come from outside or from other nodes
//	heartbeat    reports the node to the control plane's leader
//	metrics      what the node counts and knows, for Prometheus
//	errorcode    the code of every error that leaves the node
//	service      the calls of the control plane and of operators (in this package)
//
// Without a control plane the node serves any client that prepares jobs on it.
//
// A configuration may list a drive of several regions once for each region. Each is a drive to the node's parts and to
// the control plane, with jobs, image and state of its own; what lies on the flash is common to them.
//
// # Concurrency
//
// An Agent is safe for concurrent use. Close ends every goroutine before it returns. A processor is closed only after
// the mini-batches that it lent were released: finishing a job, restarting a processor and giving a drive up first end
// the open splits, then cut off responses that are being written, then wait for both (package splits).
//
// # Errors
//
// Every error that leaves the node has one of Connect's codes, as millrace.proto says (package errorcode). The errors
// of a configuration wrap [ErrConfig] and name line and column.
//
// A drive that fails (its connection is gone, or a worker panicked) fails the splits that are open on it with the code
// unavailable. It is opened again after a backoff, and its state says why.
//
// # Debugging
//
// The log names the job (digest), split, drive and fence. /metrics has what is open and buffered, P, and the
// latencies of requests. The call Describe returns everything that the node reports to the control plane:
//
//	curl -d '{}' -H 'Content-Type: application/json' URL/millrace.v1.Node/Describe
package node

// Package guard decides which callers may call a control plane, before their calls are read.
//
// # Overview
//
// [New] wraps the handler of the Connect service: the role in the peer's certificate allows a method or not (a method
// that no table lists is an operator's), and a peer that calls too often is refused. It puts the peer's identity into
// the call's context, where [Peer] finds it. [MayUse] decides by the identity whether the caller may see and use a job,
// [MayEnd] whether it may cancel the job. [OnLoopback] wraps the handlers of profiles; package exposition decides which
// callers may read metrics. Where a member listens in clear no caller is asked for its identity, and every caller may
// do everything: that is for loopback, unix sockets, and networks that an operator has called trusted.
//
// # Concurrency
//
// All of it may be used from any number of goroutines.
//
// # Errors
//
// Refusals have Connect's codes: permission_denied, unauthenticated, resource_exhausted. The error wraps [ErrOwner]
// where a job is another launcher's, [ErrOperators] where only operators may call.
//
// # Debugging
//
// A refusal names the role that is missing and the one that was shown. openssl x509 -noout -ext subjectAltName shows
// what a certificate says.
package guard

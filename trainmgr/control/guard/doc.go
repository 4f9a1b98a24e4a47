// Package guard decides who may call a control plane, before their call is read.
//
// # Overview
//
// [New] stands before the Connect service: by the role in the peer's certificate each method is allowed or not (what no
// table lists is an operator's), and a peer that asks too often is told so. It leaves who the peer is in the call's
// context, where [Peer] finds it, and [MayUse] decides by it who may see and use a job, [MayEnd] who may cancel it.
// [OnLoopback] stands before profiles; who may read metrics says package exposition. Where a member listens in clear
// nobody is asked who they are, and everybody may do everything: that is for loopback, unix sockets, and networks that
// somebody has called trusted.
//
// # Concurrency
//
// All of it may be used from any number of goroutines.
//
// # Errors
//
// Refusals are Connect's: permission_denied, unauthenticated, resource_exhausted. [ErrOwner] is wrapped where a job is
// another launcher's, [ErrOperators] where only operators may.
//
// # Debugging
//
// A refusal names the role that is missing and the one that was shown. openssl x509 -noout -ext subjectAltName shows
// what a certificate says.
package guard

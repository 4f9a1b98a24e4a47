// Package auth is NVMe in-band authentication: DH-HMAC-CHAP of the NVM Express Base Specification 2.x, section
// "NVMe In-band Authentication" (8.13 in 2.0, 8.3.4.5 in 2.2), for both sides of a queue.
//
// Nothing here does I/O or knows of time. Host and Controller are state machines: Step takes the message that arrived and
// gives the message to send. A transport carries the messages in Authentication Send and Authentication Receive commands
// (SecurityProtocol, SPSP0, SPSP1), each queue by itself, and sets the deadlines. Responder is the shape that a target
// wants: what was sent in, what is received back, whether the queue may be used.
//
//	host                                        controller
//	Step(nil)          -- AUTH_Negotiate -->    Step: hash and group chosen
//	Step               <-- Challenge --         (S1, C1, controller's DH value)
//	                   -- Reply -->             Step: host proved; (S2, C2, host's DH value)
//	Step               <-- Success1 --          (controller's response, if it was challenged)
//	                   -- Success2 -->          only if the controller was challenged
//
// # Protocol
//
// The response of the host to challenge C1 is HMAC(K, Ca || S1 || T_ID || SC_C || "HostHost" || host NQN || 00h ||
// subsystem NQN); that of the controller to C2 is HMAC(K, Ca || S2 || T_ID || SC_C || "Controller" || subsystem NQN || 00h
// || host NQN). K is the side's key, transformed by its NQN where the key says so. Ca is the challenge itself with the
// null group, else HMAC(H(g^xy mod p), challenge). Integers are little endian; g^xy keeps its leading zeros.
//
// The negotiation itself is not protected by the protocol: an attacker on the path can strike hashes or groups from the
// host's list. Offer only what is acceptable. Secure channel concatenation (TLS from the session key) is refused.
//
// # States
//
// Each side has a table of its states, and one function changes the state. docs/architecture.md shows both tables. A
// final state takes no message: a new transaction needs a new machine.
//
// # Concurrency
//
// A machine belongs to one queue and one goroutine at a time. Key is immutable. Sequence is safe for concurrent use, so
// that all queues of a target share one.
//
// # Errors
//
// A transaction that fails gives a *Failure, which says whether the peer reported it and unwraps to its Reason, the
// number that AUTH_Failure1 and AUTH_Failure2 carry: errors.Is(err, auth.NotAuthenticated). After an error the machine
// is in state failed for good.
//
// # Side channels
//
// Responses are compared in constant time. Modular exponentiation is math/big's, which is not constant time; private
// exponents are drawn anew from crypto/rand for every transaction and thrown away, so what an observer of one
// exponentiation's time may learn is of no use in another. Keys print as their kind and length, never as their bytes.
//
// # Debugging
//
// State prints its name; Failure tells the state, the reason and what was wrong. Host.Agreed and Controller.Agreed tell
// the hash and group in use.
package auth

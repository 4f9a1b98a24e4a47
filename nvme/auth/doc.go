// Package auth is NVMe in-band authentication: DH-HMAC-CHAP of the NVM Express Base Specification 2.x, section
// "NVMe In-band Authentication" (8.13 in 2.0, 8.3.4.5 in 2.2), for both sides of a queue.
//
// Package auth does no I/O and has no clock. Host and Controller are state machines: Step takes the message that
// arrived and returns the message to send. A transport carries the messages in Authentication Send and Authentication
// Receive commands (SecurityProtocol, SPSP0, SPSP1), for each queue separately, and sets the deadlines. Responder is
// the form that a target needs: Send takes a message that the host sent, Receive returns a message that the host
// fetches, and Authenticated reports whether the queue may be used.
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
// subsystem NQN); that of the controller to C2 is HMAC(K, Ca || S2 || T_ID || SC_C || "Controller" || subsystem NQN ||
// 00h || host NQN). K is the side's key, transformed by its NQN where the key says so. Ca is the challenge itself with
// the null group, else HMAC(H(g^xy mod p), challenge). Integers are little endian; g^xy keeps its leading zeros.
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
// A transaction that fails returns a *TransactionError. It says whether the peer reported the failure, and unwraps to
// its Reason, the number in AUTH_Failure1 and AUTH_Failure2: errors.Is(err, auth.NotAuthenticated). After an error the
// machine stays in the state failed.
//
// # Side channels
//
// Responses are compared in constant time. Modular exponentiation is math/big's, which does not run in constant time.
// Private exponents are drawn from crypto/rand for each transaction and used once, so that the time of one
// exponentiation reveals nothing about another. Keys print as their kind and length, never as their bytes.
//
// # Debugging
//
// State prints its name. TransactionError has the state, the reason and the detail. Host.Agreed and Controller.Agreed
// return the hash and group in use.
package auth

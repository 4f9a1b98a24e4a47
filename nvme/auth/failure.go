package auth

import "fmt"

// reasonCode is the reason code of AUTH_Failure1 and AUTH_Failure2: authentication failure, the only code that is
// defined.
const reasonCode = 1

// Reason is the reason code explanation of AUTH_Failure1 and AUTH_Failure2. It implements error, so that
// errors.Is(err, NotAuthenticated) works on what a machine returns.
type Reason uint8

// Reasons (Base Specification 2.x, AUTH_Failure1 message). A peer may send others.
const (
	NotAuthenticated Reason = 1 // the response is not that of the key
	ProtocolUnusable Reason = 2 // no authentication protocol in common
	ConcatMismatch   Reason = 3 // secure channel concatenation asked for where it is not offered
	HashUnusable     Reason = 4 // no hash function in common
	GroupUnusable    Reason = 5 // no Diffie-Hellman group in common
	IncorrectPayload Reason = 6 // a message with a wrong length or field
	IncorrectMessage Reason = 7 // a message out of turn
)

func (r Reason) Error() string {
	switch r {
	case NotAuthenticated:
		return "authentication failed"
	case ProtocolUnusable:
		return "authentication protocol not usable"
	case ConcatMismatch:
		return "secure channel concatenation mismatch"
	case HashUnusable:
		return "hash function not usable"
	case GroupUnusable:
		return "Diffie-Hellman group not usable"
	case IncorrectPayload:
		return "incorrect payload"
	case IncorrectMessage:
		return "incorrect protocol message"
	}
	return fmt.Sprintf("reason %02Xh", uint8(r))
}

// TransactionError says why a transaction failed.
type TransactionError struct {
	Reason Reason
	Remote bool   // the peer reported it
	State  State  // in which this side was
	Detail string // what was wrong, in words; empty where only the reason is known
}

func (f *TransactionError) Error() string {
	s := "dh-hmac-chap: " + f.State.String() + ": "
	if f.Remote {
		s += "the peer reports: "
	}
	s += f.Reason.Error()
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

// Unwrap returns the Reason.
func (f *TransactionError) Unwrap() error { return f.Reason }

// malformed makes the TransactionError of a message whose bytes are wrong. The machine that took the message fills in
// its state.
func malformed(format string, args ...any) *TransactionError {
	return &TransactionError{Reason: IncorrectPayload, Detail: fmt.Sprintf(format, args...)}
}

package fabrics

import "github.com/millrace/millrace/nvme"

// Bits of dword 0 of a Connect that succeeded: what the controller demands before it takes other commands on the queue
// (AUTHREQ, bits 31:16; as Linux reads them).
const (
	WantsAuthentication = 1 << 17 // ATR: authenticate
	WantsConcatenation  = 1 << 18 // ASCR: authenticate, and go on over a secure channel made from that
)

// The names of in-band authentication among the security protocols.
const (
	authProtocol = 0xe9   // SECP: those that NVM Express defines
	authSpecific = 0x0101 // SPSP1, SPSP0
)

// AuthSend builds an Authentication Send of n bytes.
func AuthSend(n uint32) nvme.Command { return authCommand(TypeAuthSend, n) }

// AuthReceive builds an Authentication Receive that allocates n bytes.
func AuthReceive(n uint32) nvme.Command { return authCommand(TypeAuthReceive, n) }

func authCommand(fctype uint8, n uint32) nvme.Command {
	e := command(fctype, n)
	le.PutUint16(e[41:], authSpecific)
	e[43] = authProtocol
	le.PutUint32(e[44:], n)
	return e
}

// ParseAuth reads the length of an Authentication Send or Receive. ok is false where the entry is of another security
// protocol, its length is 0, or its data descriptor has another length.
func ParseAuth(e *nvme.Command) (n uint32, ok bool) {
	n = le.Uint32(e[44:])
	return n, le.Uint16(e[41:]) == authSpecific && e[43] == authProtocol && n != 0 && e.SGL().Length == n
}

package auth

import "encoding/binary"

// terms are the inputs of a response, beside the key.
type terms struct {
	hash         Hash
	shared       []byte // the Diffie-Hellman shared secret; nil with the null group
	transaction  uint16
	host, subsys string // NQNs
}

// SC_C as responses hold it: no secure channel concatenation.
const noConcatenation = 0

// augmented is the challenge that the key answers: with a group, bound to the shared secret.
func (t *terms) augmented(challenge []byte) []byte {
	if t.shared == nil {
		return challenge
	}
	return t.hash.mac(t.hash.sum(t.shared), challenge)
}

// hostResponse answers the controller's challenge with the host's key.
func (t *terms) hostResponse(key Key, challenge []byte, seq uint32) []byte {
	return t.response(key.transformed(t.host), challenge, seq, "HostHost", t.host, t.subsys)
}

// controllerResponse answers the host's challenge with the controller's key.
func (t *terms) controllerResponse(key Key, challenge []byte, seq uint32) []byte {
	return t.response(key.transformed(t.subsys), challenge, seq, "Controller", t.subsys, t.host)
}

func (t *terms) response(key, challenge []byte, seq uint32, role, first, second string) []byte {
	var fixed [7]byte
	binary.LittleEndian.PutUint32(fixed[0:], seq)
	binary.LittleEndian.PutUint16(fixed[4:], t.transaction)
	fixed[6] = noConcatenation
	return t.hash.mac(key, t.augmented(challenge), fixed[:], []byte(role), []byte(first), []byte{0}, []byte(second))
}

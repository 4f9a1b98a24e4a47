package auth

import (
	"encoding/binary"
	"fmt"
)

// The names of the protocol in Authentication Send and Authentication Receive commands, and the bounds of the
// commands.
const (
	SecurityProtocol = 0xe9 // SECP: the protocols that NVM Express defines
	SPSP0            = 0x01
	SPSP1            = 0x01

	// MaxMessage is the length in bytes that a host allocates for an Authentication Receive, and more than any message of
	// this package has: the longest, a reply with SHA-512 and ffdhe8192, has 1168.
	MaxMessage = 4096
)

// MessageID says what a message is: its authentication type in the high byte, its identifier in the low one.
type MessageID uint16

// Messages.
const (
	MessageNegotiate MessageID = 0x0000
	MessageFailure2  MessageID = 0x00f0
	MessageFailure1  MessageID = 0x00f1
	MessageChallenge MessageID = 0x0101
	MessageReply     MessageID = 0x0102
	MessageSuccess1  MessageID = 0x0103
	MessageSuccess2  MessageID = 0x0104
)

func (m MessageID) String() string {
	switch m {
	case MessageNegotiate:
		return "AUTH_Negotiate"
	case MessageFailure1:
		return "AUTH_Failure1"
	case MessageFailure2:
		return "AUTH_Failure2"
	case MessageChallenge:
		return "DH-HMAC-CHAP_Challenge"
	case MessageReply:
		return "DH-HMAC-CHAP_Reply"
	case MessageSuccess1:
		return "DH-HMAC-CHAP_Success1"
	case MessageSuccess2:
		return "DH-HMAC-CHAP_Success2"
	}
	return fmt.Sprintf("message %02Xh/%02Xh", uint8(m>>8), uint8(m))
}

// Every message starts with its type (byte 0), identifier (1), two reserved bytes and the transaction identifier (4:5).
const (
	headerLen     = 6
	negotiateLen  = 8  // before the descriptors
	descriptorLen = 64 // of one protocol
	challengeLen  = 16 // before the challenge
	replyLen      = 16 // before the response
	success1Len   = 16 // before the response
	success2Len   = 16
	failureLen    = 8

	dhchapID      = 0x01 // the descriptor of DH-HMAC-CHAP
	maxIdentities = 30   // hashes, and groups, of one descriptor
	groupsAt      = 4 + maxIdentities
)

// Header reads what a message is and its transaction identifier. ok is false if b is shorter than that.
func Header(b []byte) (id MessageID, transaction uint16, ok bool) {
	if len(b) < headerLen {
		return 0, 0, false
	}
	return MessageID(b[0])<<8 | MessageID(b[1]), binary.LittleEndian.Uint16(b[4:]), true
}

// message is n zeroed bytes with a header.
func message(id MessageID, transaction uint16, n int) []byte {
	b := make([]byte, n)
	b[0], b[1] = byte(id>>8), byte(id)
	binary.LittleEndian.PutUint16(b[4:], transaction)
	return b
}

// checkHeader is the start of every parser: the message is id and has at least n bytes, or exactly n if exact. A host
// receives a message in a buffer that is longer than the message, so only a message to a controller has an exact
// length. Reserved bytes are not looked at, as the specification wants it of a recipient.
func checkHeader(b []byte, id MessageID, n int, exact bool) (transaction uint16, err error) {
	got, transaction, ok := Header(b)
	switch {
	case !ok:
		return 0, malformed("a message of %d bytes has no header", len(b))
	case got != id:
		return 0, &TransactionError{Reason: IncorrectMessage, Detail: fmt.Sprintf("%v where %v is due", got, id)}
	case len(b) > MaxMessage:
		return 0, malformed("%v of %d bytes, more than %d", id, len(b), MaxMessage)
	case len(b) < n || exact && len(b) != n:
		return 0, malformed("%v of %d bytes, not %d", id, len(b), n)
	}
	return transaction, nil
}

// Negotiate is AUTH_Negotiate: what the host offers. A message of several protocols is read for its first descriptor of
// DH-HMAC-CHAP.
type Negotiate struct {
	Transaction   uint16
	Concatenation uint8   // SC_C; 0: no secure channel
	Hashes        []Hash  // at most 30, in the order of the host
	Groups        []Group // at most 30
}

// Marshal lays the message out. More than 30 hashes or groups are an error.
func (m *Negotiate) Marshal() ([]byte, error) {
	if len(m.Hashes) > maxIdentities || len(m.Groups) > maxIdentities {
		return nil, fmt.Errorf("dh-hmac-chap: %d hashes and %d groups; at most %d of each can be offered",
			len(m.Hashes), len(m.Groups), maxIdentities)
	}
	b := message(MessageNegotiate, m.Transaction, negotiateLen+descriptorLen)
	b[6], b[7] = m.Concatenation, 1
	d := b[negotiateLen:]
	d[0], d[2], d[3] = dhchapID, byte(len(m.Hashes)), byte(len(m.Groups))
	for i, h := range m.Hashes {
		d[4+i] = byte(h)
	}
	for i, g := range m.Groups {
		d[groupsAt+i] = byte(g)
	}
	return b, nil
}

// ParseNegotiate reads an AUTH_Negotiate of exactly len(b) bytes. The error is a *TransactionError.
func ParseNegotiate(b []byte) (*Negotiate, error) {
	t, err := checkHeader(b, MessageNegotiate, negotiateLen, false)
	if err != nil {
		return nil, err
	}
	m := &Negotiate{Transaction: t, Concatenation: b[6]}
	count := int(b[7])
	if count == 0 || len(b) != negotiateLen+count*descriptorLen {
		return nil, malformed("%v of %d bytes with %d protocol descriptors", MessageNegotiate, len(b), count)
	}
	for d := b[negotiateLen:]; len(d) > 0; d = d[descriptorLen:] {
		if d[0] != dhchapID {
			continue
		}
		hashes, groups := int(d[2]), int(d[3])
		if hashes > maxIdentities || groups > maxIdentities {
			return nil, malformed("%v offers %d hashes and %d groups, more than %d", MessageNegotiate, hashes, groups,
				maxIdentities)
		}
		for _, id := range d[4 : 4+hashes] {
			m.Hashes = append(m.Hashes, Hash(id))
		}
		for _, id := range d[groupsAt : groupsAt+groups] {
			m.Groups = append(m.Groups, Group(id))
		}
		return m, nil
	}
	return nil, &TransactionError{Reason: ProtocolUnusable, Detail: fmt.Sprintf("%v does not offer "+
		"DH-HMAC-CHAP", MessageNegotiate)}
}

// Challenge is DH-HMAC-CHAP_Challenge: what the controller chose, and its challenge.
type Challenge struct {
	Transaction uint16
	Hash        Hash
	Group       Group
	Sequence    uint32 // S1
	Value       []byte // C1, Hash.Len bytes
	Public      []byte // the controller's Diffie-Hellman value, Group.Len bytes; empty with NullGroup
}

// Marshal lays the message out.
func (m *Challenge) Marshal() []byte {
	b := message(MessageChallenge, m.Transaction, challengeLen)
	b[6], b[8], b[9] = byte(len(m.Value)), byte(m.Hash), byte(m.Group)
	binary.LittleEndian.PutUint16(b[10:], uint16(len(m.Public)))
	binary.LittleEndian.PutUint32(b[12:], m.Sequence)
	return append(append(b, m.Value...), m.Public...)
}

// ParseChallenge reads a DH-HMAC-CHAP_Challenge, which b may exceed. The lengths are those of the hash and the group.
// The error is a *TransactionError. Value and Public share b's memory.
func ParseChallenge(b []byte) (*Challenge, error) {
	t, err := checkHeader(b, MessageChallenge, challengeLen, false)
	if err != nil {
		return nil, err
	}
	m := &Challenge{Transaction: t, Hash: Hash(b[8]), Group: Group(b[9]), Sequence: binary.LittleEndian.Uint32(b[12:])}
	n, public := int(b[6]), int(binary.LittleEndian.Uint16(b[10:]))
	switch {
	case m.Hash.Len() == 0:
		return nil, &TransactionError{Reason: HashUnusable, Detail: m.Hash.String() + " is not known"}
	case n != m.Hash.Len():
		return nil, malformed("%v of %v with a hash length of %d", MessageChallenge, m.Hash, n)
	case !m.Group.Known():
		return nil, &TransactionError{Reason: GroupUnusable, Detail: m.Group.String() + " is not known"}
	case public != m.Group.Len():
		return nil, malformed("%v of %v with a public value of %d bytes", MessageChallenge, m.Group, public)
	case len(b) < challengeLen+n+public:
		return nil, malformed("%v of %d bytes, not %d", MessageChallenge, len(b), challengeLen+n+public)
	}
	b = b[challengeLen:]
	m.Value, m.Public = b[:n:n], b[n:n+public:n+public]
	return m, nil
}

// Reply is DH-HMAC-CHAP_Reply: the host's response, and its challenge if it wants the controller to prove itself.
type Reply struct {
	Transaction uint16
	Response    []byte // R1, the hash's length
	Challenge   []byte // C2, as long as Response; nil: the controller is not challenged
	Sequence    uint32 // S2; never 0 with a challenge, and of no meaning without one
	Public      []byte // the host's Diffie-Hellman value
}

// Marshal lays the message out. Without a challenge its place is zeros.
func (m *Reply) Marshal() []byte {
	n := len(m.Response)
	b := message(MessageReply, m.Transaction, replyLen+2*n)
	b[6] = byte(n)
	if m.Challenge != nil {
		b[8] = 1
	}
	binary.LittleEndian.PutUint16(b[10:], uint16(len(m.Public)))
	binary.LittleEndian.PutUint32(b[12:], m.Sequence)
	copy(b[replyLen:], m.Response)
	copy(b[replyLen+n:], m.Challenge)
	return append(b, m.Public...)
}

// ParseReply reads a DH-HMAC-CHAP_Reply of exactly len(b) bytes, for the hash and group that were chosen. The error is
// a *TransactionError. The slices share b's memory.
func ParseReply(b []byte, hash Hash, group Group) (*Reply, error) {
	n, public := hash.Len(), group.Len()
	t, err := checkHeader(b, MessageReply, replyLen+2*n+public, true)
	if err != nil {
		return nil, err
	}
	m := &Reply{Transaction: t, Sequence: binary.LittleEndian.Uint32(b[12:])}
	if int(b[6]) != n || int(binary.LittleEndian.Uint16(b[10:])) != public {
		return nil, malformed("%v with a hash length of %d and a public value of %d bytes, not %d and %d", MessageReply,
			b[6], binary.LittleEndian.Uint16(b[10:]), n, public)
	}
	// Without a challenge the specification says 0, and Linux 6.12 counts on.
	if b[8] > 1 || b[8] == 1 && m.Sequence == 0 {
		return nil, malformed("%v with CVALID %d and sequence number %d", MessageReply, b[8], m.Sequence)
	}
	body := b[replyLen:]
	m.Response, m.Public = body[:n:n], body[2*n:]
	if b[8] == 1 {
		m.Challenge = body[n : 2*n : 2*n]
	}
	return m, nil
}

// Success1 is DH-HMAC-CHAP_Success1: the host is authenticated; and the controller's response, if it was challenged.
type Success1 struct {
	Transaction uint16
	Hash        Hash
	Response    []byte // R2, Hash.Len bytes; nil: the controller was not challenged
}

// Marshal lays the message out. Without a response its place is zeros.
func (m *Success1) Marshal() []byte {
	b := message(MessageSuccess1, m.Transaction, success1Len+m.Hash.Len())
	b[6] = byte(m.Hash.Len())
	if m.Response != nil {
		b[8] = 1
	}
	copy(b[success1Len:], m.Response)
	return b
}

// ParseSuccess1 reads a DH-HMAC-CHAP_Success1 for the hash that was chosen; b may exceed it. Without a response the
// place of one may be missing: targets differ. The error is a *TransactionError. Response shares b's memory.
func ParseSuccess1(b []byte, hash Hash) (*Success1, error) {
	t, err := checkHeader(b, MessageSuccess1, success1Len, false)
	if err != nil {
		return nil, err
	}
	m, n := &Success1{Transaction: t, Hash: hash}, hash.Len()
	switch {
	case int(b[6]) != n:
		return nil, malformed("%v with a hash length of %d, not %d", MessageSuccess1, b[6], n)
	case b[8] > 1:
		return nil, malformed("%v with RVALID %d", MessageSuccess1, b[8])
	case b[8] == 0:
		return m, nil
	case len(b) < success1Len+n:
		return nil, malformed("%v of %d bytes, not %d", MessageSuccess1, len(b), success1Len+n)
	}
	m.Response = b[success1Len : success1Len+n : success1Len+n]
	return m, nil
}

// Success2 is DH-HMAC-CHAP_Success2: the controller is authenticated.
type Success2 struct{ Transaction uint16 }

// Marshal lays the message out.
func (m *Success2) Marshal() []byte { return message(MessageSuccess2, m.Transaction, success2Len) }

// ParseSuccess2 reads a DH-HMAC-CHAP_Success2 of exactly len(b) bytes. The error is a *TransactionError.
func ParseSuccess2(b []byte) (*Success2, error) {
	t, err := checkHeader(b, MessageSuccess2, success2Len, true)
	if err != nil {
		return nil, err
	}
	return &Success2{Transaction: t}, nil
}

// FailureMessage is AUTH_Failure1, which a controller sends, or AUTH_Failure2, which a host sends.
type FailureMessage struct {
	ID          MessageID // MessageFailure1 or MessageFailure2
	Transaction uint16
	Reason      Reason
}

// Marshal lays the message out.
func (m *FailureMessage) Marshal() []byte {
	b := message(m.ID, m.Transaction, failureLen)
	b[6], b[7] = reasonCode, byte(m.Reason)
	return b
}

// ParseFailure reads an AUTH_Failure1 or AUTH_Failure2; b may be longer. The reason may be one without a name here. The
// error is a *TransactionError.
func ParseFailure(b []byte) (*FailureMessage, error) {
	id, _, _ := Header(b)
	if id != MessageFailure2 {
		id = MessageFailure1
	}
	t, err := checkHeader(b, id, failureLen, false)
	if err != nil {
		return nil, err
	}
	return &FailureMessage{ID: id, Transaction: t, Reason: Reason(b[7])}, nil
}

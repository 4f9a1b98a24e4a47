package ticket

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

var (
	// ErrNone says that a request shows no ticket, or none that a leader of the control plane has signed.
	ErrNone = errors.New("no valid ticket")
	// ErrVoid says that a ticket is not, or no longer, good for the request.
	ErrVoid = errors.New("the ticket is not good for this")
	// ErrKey says that a ticket's key is not known yet.
	ErrKey = errors.New("the ticket's key is not known here yet: ask again in a moment")
)

// context separates these signatures from any other that a key might make.
const context = "millrace ticket 1\x00"

// MaxBytes is the largest size of a signed ticket, and bounds the foreign bytes that are decoded.
const MaxBytes = 2 << 10

// Signer signs tickets for a leader's term.
type Signer struct {
	id  uint64
	key ed25519.PrivateKey
}

// NewSigner makes a key for the term of the leader whose fence is id.
func NewSigner(id uint64) (*Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for tickets: %w", err)
	}
	return &Signer{id: id, key: key}, nil
}

// Key returns the public half of the key, for nodes.
func (s *Signer) Key() *apiv1.TicketKey {
	return &apiv1.TicketKey{Id: s.id, PublicKey: s.key.Public().(ed25519.PublicKey)}
}

// Sign returns the bytes of an apiv1.SignedTicket. It sets the ticket's key.
func (s *Signer) Sign(t *apiv1.Ticket) ([]byte, error) {
	t.Key = s.id
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("sign a ticket: %w", err)
	}
	b, err := encode(raw, ed25519.Sign(s.key, signedBytes(raw)))
	if err != nil {
		return nil, fmt.Errorf("sign a ticket: %w", err)
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("sign a ticket: it takes %d bytes, at most %d: names of nodes and drives are too long",
			len(b), MaxBytes)
	}
	return b, nil
}

// signedBytes returns the bytes that a signature is of.
func signedBytes(raw []byte) []byte { return append([]byte(context), raw...) }

// encode returns the bytes of an apiv1.SignedTicket.
func encode(raw, signature []byte) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(&apiv1.SignedTicket{Ticket: raw, Signature: signature})
}

// decode decodes a header. It does not check the signature. The error wraps ErrNone.
func decode(header string) (t *apiv1.Ticket, raw, signature []byte, err error) {
	if base64.StdEncoding.DecodedLen(len(header)) > MaxBytes+2 {
		return nil, nil, nil, fmt.Errorf("%w: a header of %d bytes is too long", ErrNone, len(header))
	}
	b, err := base64.StdEncoding.Strict().DecodeString(header)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%w: it is not base64: %w", ErrNone, err)
	}
	var s apiv1.SignedTicket
	if err := proto.Unmarshal(b, &s); err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	t = &apiv1.Ticket{}
	if err := proto.Unmarshal(s.Ticket, t); err != nil {
		return nil, nil, nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	return t, s.Ticket, s.Signature, nil
}

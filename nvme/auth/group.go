package auth

import (
	"errors"
	"fmt"
	"io"
	"math/big"
)

// Group is a Diffie-Hellman group by its identifier in DH-HMAC-CHAP messages.
type Group uint8

// Groups: none at all, and the finite field groups of RFC 7919.
const (
	NullGroup Group = 0
	FFDHE2048 Group = 1
	FFDHE3072 Group = 2
	FFDHE4096 Group = 3
	FFDHE6144 Group = 4
	FFDHE8192 Group = 5
)

// groupParameters are those of one finite field group. The generator is 2.
type groupParameters struct {
	prime string
	bits  int
	// exponent is the length in bytes of a private exponent: at least twice the group's strength as RFC 7919, appendix A
	// says (225, 275, 325, 375 and 400 bits), rounded up to whole 64-bit words and one more.
	exponent int
}

var groups = map[Group]groupParameters{
	FFDHE2048: {ffdhe2048, 2048, 40},
	FFDHE3072: {ffdhe3072, 3072, 48},
	FFDHE4096: {ffdhe4096, 4096, 56},
	FFDHE6144: {ffdhe6144, 6144, 56},
	FFDHE8192: {ffdhe8192, 8192, 64},
}

var errPublicValue = errors.New("the public value is not between 2 and p-2")

// Known reports whether the group is one of those above.
func (g Group) Known() bool { return g <= FFDHE8192 }

// Len is the length in bytes of the group's public values and shared secrets; 0 for NullGroup and unknown groups.
func (g Group) Len() int { return groups[g].bits / 8 }

func (g Group) String() string {
	switch p, ok := groups[g]; {
	case g == NullGroup:
		return "null"
	case ok:
		return fmt.Sprintf("ffdhe%d", p.bits)
	}
	return fmt.Sprintf("group %02Xh", uint8(g))
}

// prime is the group's modulus.
func (g Group) prime() *big.Int {
	p, ok := new(big.Int).SetString(groups[g].prime, 16)
	if !ok {
		return new(big.Int) // unreachable: the constants are tested
	}
	return p
}

// exchange is one side of a Diffie-Hellman exchange, for one transaction.
type exchange struct {
	group    Group
	p        *big.Int
	exponent *big.Int
	public   []byte // big endian, Len bytes
}

// newExchange draws a private exponent and computes its public value. The group must not be NullGroup.
func newExchange(g Group, random io.Reader) (*exchange, error) {
	b := make([]byte, groups[g].exponent)
	if _, err := io.ReadFull(random, b); err != nil {
		return nil, fmt.Errorf("draw a private exponent: %w", err)
	}
	b[0] |= 0x80 // of full length, so never 0 or 1
	e := &exchange{group: g, p: g.prime(), exponent: new(big.Int).SetBytes(b)}
	clear(b)
	y := new(big.Int).Exp(big.NewInt(2), e.exponent, e.p)
	e.public = y.FillBytes(make([]byte, g.Len()))
	return e, nil
}

// shared computes the secret from the peer's public value: Len bytes, with leading zeros kept. A value outside 2..p-2
// would make a secret that anyone knows, and is errPublicValue. As p is a safe prime, the remaining small subgroup
// reveals at most one bit of an exponent that is used once.
func (e *exchange) shared(public []byte) ([]byte, error) {
	y := new(big.Int).SetBytes(public)
	last := new(big.Int).Sub(e.p, big.NewInt(2))
	if len(public) != e.group.Len() || y.Cmp(big.NewInt(2)) < 0 || y.Cmp(last) > 0 {
		return nil, errPublicValue
	}
	s := new(big.Int).Exp(y, e.exponent, e.p)
	return s.FillBytes(make([]byte, e.group.Len())), nil
}

// forget drops the private exponent.
func (e *exchange) forget() {
	if e == nil {
		return
	}
	clear(e.exponent.Bits())
	e.exponent.SetInt64(0)
}

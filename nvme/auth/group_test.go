package auth

import (
	"bytes"
	"crypto/rand"
	"errors"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var allGroups = []Group{NullGroup, FFDHE2048, FFDHE3072, FFDHE4096, FFDHE6144, FFDHE8192}

// eTimesTwoTo is floor(2^bits * e), by the series of e.
func eTimesTwoTo(bits uint) *big.Int {
	const guard = 64
	sum, term := new(big.Int), new(big.Int).Lsh(big.NewInt(1), bits+guard)
	for n := int64(1); term.Sign() > 0; n++ {
		sum.Add(sum, term)
		term.Div(term, big.NewInt(n))
	}
	return sum.Rsh(sum, guard)
}

// RFC 7919, appendix A, gives each prime by a formula and the X that makes it a safe prime.
func TestPrimesAreThoseOfTheFormula(t *testing.T) {
	offsets := map[Group]int64{FFDHE2048: 560316, FFDHE3072: 2625351, FFDHE4096: 5736041, FFDHE6144: 15705020,
		FFDHE8192: 10965728}
	one := big.NewInt(1)
	for g, x := range offsets {
		bits := uint(groups[g].bits)
		want := eTimesTwoTo(bits - 130)
		want.Add(want, big.NewInt(x)).Lsh(want, 64)
		want.Add(want, new(big.Int).Lsh(one, bits))
		want.Sub(want, new(big.Int).Lsh(one, bits-64))
		want.Sub(want, one)
		assert.Equal(t, want.Text(16), g.prime().Text(16), g.String())
		assert.Equal(t, int(bits), g.prime().BitLen())
		assert.GreaterOrEqual(t, groups[g].exponent*8, map[Group]int{FFDHE2048: 225, FFDHE3072: 275, FFDHE4096: 325,
			FFDHE6144: 375, FFDHE8192: 400}[g])
	}
}

// The two smaller primes are checked to be safe primes with 2 in the subgroup of order q; the larger ones, which follow
// from the same formula, take tens of seconds under load and are left to MILLRACE_SWEEP.
func TestPrimesAreSafe(t *testing.T) {
	list := []Group{FFDHE2048, FFDHE3072}
	if sweep() {
		list = allGroups[1:]
	}
	for _, g := range list {
		p := g.prime()
		q := new(big.Int).Rsh(p, 1)
		assert.True(t, p.ProbablyPrime(1), "%v: p", g)
		assert.True(t, q.ProbablyPrime(1), "%v: (p-1)/2", g)
		assert.Equal(t, int64(1), new(big.Int).Exp(big.NewInt(2), q, p).Int64(), "%v: 2^q", g)
	}
}

func TestExchangeAgrees(t *testing.T) {
	for _, g := range allGroups[1:] {
		a, err := newExchange(g, rand.Reader)
		require.NoError(t, err)
		b, err := newExchange(g, rand.Reader)
		require.NoError(t, err)
		assert.Len(t, a.public, g.Len())
		assert.NotEqual(t, a.public, b.public)
		s, err := a.shared(b.public)
		require.NoError(t, err)
		s2, err := b.shared(a.public)
		require.NoError(t, err)
		assert.Equal(t, s, s2, g.String())
		assert.Len(t, s, g.Len())
		a.forget()
		assert.Zero(t, a.exponent.Sign())
	}
}

func TestPublicValuesOutOfRange(t *testing.T) {
	g := FFDHE2048
	e, err := newExchange(g, rand.Reader)
	require.NoError(t, err)
	p := g.prime()
	fill := func(delta int64) []byte {
		return new(big.Int).Add(p, big.NewInt(delta)).FillBytes(make([]byte, g.Len()))
	}
	small := func(v byte) []byte { return append(make([]byte, g.Len()-1), v) }
	for name, v := range map[string][]byte{
		"0": small(0), "1": small(1), "p-1": fill(-1), "p": fill(0), "p+1": fill(1),
		"all ones": bytes.Repeat([]byte{0xff}, g.Len()), "short": small(2)[1:], "long": append([]byte{0},
			small(2)...), "none": nil,
	} {
		_, err := e.shared(v)
		require.ErrorIs(t, err, errPublicValue, name)
	}
	for name, v := range map[string][]byte{"2": small(2), "p-2": fill(-2)} {
		_, err := e.shared(v)
		require.NoError(t, err, name)
	}
}

// A shared secret keeps its leading zeros: H(S) is over the group's whole length.
func TestSharedSecretKeepsLeadingZeros(t *testing.T) {
	g := FFDHE2048
	e := &exchange{group: g, p: g.prime(), exponent: big.NewInt(1)}
	s, err := e.shared(append(make([]byte, g.Len()-1), 2))
	require.NoError(t, err)
	assert.Equal(t, append(make([]byte, g.Len()-1), 2), s)
}

func TestExchangeWithoutRandomness(t *testing.T) {
	_, err := newExchange(FFDHE2048, bytes.NewReader(make([]byte, 39)))
	require.Error(t, err)
	_, err = newExchange(FFDHE2048, failing{})
	require.ErrorIs(t, err, errNoEntropy)
}

var errNoEntropy = errors.New("no entropy")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errNoEntropy }

func TestNames(t *testing.T) {
	assert.Equal(t, "null", NullGroup.String())
	assert.Equal(t, "ffdhe6144", FFDHE6144.String())
	assert.Equal(t, "group 06h", Group(6).String())
	assert.False(t, Group(6).Known())
	assert.Zero(t, Group(6).Len())
	assert.Equal(t, "SHA-384", SHA384.String())
	assert.Equal(t, "hash 04h", Hash(4).String())
	assert.Zero(t, NoHash.Len())
	assert.Equal(t, "message 01h/09h", MessageID(0x109).String())
	assert.Equal(t, "reason 2Ah", Reason(42).Error())
	assert.Equal(t, "state 99", State(99).String())
	assert.Equal(t, "SHA-256, ffdhe2048", Agreed{SHA256, FFDHE2048}.String())
}

func BenchmarkExchange(b *testing.B) {
	for _, g := range allGroups[1:] {
		b.Run(g.String(), func(b *testing.B) {
			peer, err := newExchange(g, rand.Reader)
			require.NoError(b, err)
			for b.Loop() {
				e, _ := newExchange(g, rand.Reader)
				if _, err := e.shared(peer.public); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package auth

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Offsets as the Base Specification 2.x draws them, written out by hand.
func TestLayouts(t *testing.T) {
	negotiate, err := (&Negotiate{Transaction: 0x0201, Hashes: allHashes, Groups: allGroups}).Marshal()
	require.NoError(t, err)
	want := "0000" + "0000" + "0102" + "00" + "01" + // type, id, reserved, T_ID, SC_C, NAPD
		"01" + "00" + "03" + "06" + "010203" + zeros(27) + "000102030405" + zeros(24)
	assert.Equal(t, want, hex.EncodeToString(negotiate))

	c := Challenge{Transaction: 0x0201, Hash: SHA256, Group: NullGroup, Sequence: 0x04030201, Value: make([]byte, 32)}
	c.Value[0], c.Value[31] = 0xaa, 0xbb
	assert.Equal(t, "0101"+"0000"+"0102"+"20"+"00"+"01"+"00"+"0000"+"01020304"+"aa"+zeros(30)+"bb",
		hex.EncodeToString(c.Marshal()))

	r := Reply{Transaction: 0x0201, Response: c.Value, Challenge: append([]byte{0xcc}, make([]byte, 31)...),
		Sequence: 0x04030201,
		Public:   make([]byte, 0x100)}
	assert.Equal(t,
		"0102"+"0000"+"0102"+"20"+"00"+"01"+"00"+"0001"+"01020304"+"aa"+zeros(30)+"bb"+"cc"+zeros(31)+zeros(0x100),
		hex.EncodeToString(r.Marshal()))
	r = Reply{Transaction: 0x0201, Response: c.Value}
	assert.Equal(t, "0102"+"0000"+"0102"+"20"+"00"+"00"+"00"+"0000"+"00000000"+"aa"+zeros(30)+"bb"+zeros(32),
		hex.EncodeToString(r.Marshal()))

	s := Success1{Transaction: 0x0201, Hash: SHA256, Response: c.Value}
	assert.Equal(t, "0103"+"0000"+"0102"+"20"+"00"+"01"+zeros(7)+"aa"+zeros(30)+"bb", hex.EncodeToString(s.Marshal()))
	s.Response = nil
	assert.Equal(t, "0103"+"0000"+"0102"+"20"+"00"+"00"+zeros(7)+zeros(32), hex.EncodeToString(s.Marshal()))

	assert.Equal(t, "0104"+"0000"+"0102"+zeros(10), hex.EncodeToString((&Success2{Transaction: 0x0201}).Marshal()))
	assert.Equal(t, "00f1"+"0000"+"0102"+"01"+"04", hex.EncodeToString((&FailureMessage{MessageFailure1, 0x0201,
		HashUnusable}).Marshal()))
	assert.Equal(t, "00f0"+"0000"+"0102"+"01"+"01", hex.EncodeToString((&FailureMessage{MessageFailure2, 0x0201,
		NotAuthenticated}).Marshal()))
}

func zeros(n int) string { return hex.EncodeToString(make([]byte, n)) }

// The longest messages fit in what a host allocates.
func TestLongestMessages(t *testing.T) {
	r := Reply{Response: make([]byte, maxHashLen), Public: make([]byte, FFDHE8192.Len())}
	assert.Len(t, r.Marshal(), 1168)
	assert.Less(t, len(r.Marshal()), MaxMessage)
}

// TestParseNegotiateWithTheOfferOfLinux parses a message laid out as the Linux 6.12 host lays out its offer: three
// hashes, six groups, one descriptor. The bytes are put together here; package nvme/tcp/kerneltest authenticates with a
// kernel.
func TestParseNegotiateWithTheOfferOfLinux(t *testing.T) {
	b, err := hex.DecodeString("0000" + "0000" + "0000" + "00" + "01" + "01000306" + "010203" + zeros(27) +
		"000102030405" + zeros(24))
	require.NoError(t, err)
	n, err := ParseNegotiate(b)
	require.NoError(t, err)
	assert.Equal(t, &Negotiate{Hashes: allHashes, Groups: allGroups}, n)
}

func TestParseNegotiate(t *testing.T) {
	good, err := (&Negotiate{Transaction: 5, Hashes: allHashes, Groups: allGroups}).Marshal()
	require.NoError(t, err)
	other := make([]byte, descriptorLen)
	other[0] = 9
	with := func(change func(b []byte)) []byte {
		b := append([]byte(nil), good...)
		change(b)
		return b
	}
	many := func(n int, d ...[]byte) []byte {
		b := append([]byte(nil), good[:negotiateLen]...)
		b[7] = byte(n)
		for _, d := range d {
			b = append(b, d...)
		}
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		want Reason
	}{
		{"no descriptor", many(0), IncorrectPayload},
		{"fewer than said", many(2, good[negotiateLen:]), IncorrectPayload},
		{"more than said", many(1, good[negotiateLen:], other), IncorrectPayload},
		{"31 hashes", with(func(b []byte) { b[negotiateLen+2] = 31 }), IncorrectPayload},
		{"31 groups", with(func(b []byte) { b[negotiateLen+3] = 31 }), IncorrectPayload},
		{"another protocol", with(func(b []byte) { b[negotiateLen] = 2 }), ProtocolUnusable},
		{"other protocols", many(3, other, other, other), ProtocolUnusable},
		{"63 descriptors are too long", many(64, make([]byte, 64*descriptorLen)), IncorrectPayload},
		{"another message", (&Success2{}).Marshal(), IncorrectMessage},
		{"nothing", nil, IncorrectPayload},
	} {
		_, err := ParseNegotiate(c.b)
		require.ErrorIs(t, err, c.want, c.name)
	}
	n, err := ParseNegotiate(many(3, other, good[negotiateLen:], other))
	require.NoError(t, err, "ours among others")
	assert.Equal(t, allGroups, n.Groups)
	n, err = ParseNegotiate(with(func(b []byte) { b[negotiateLen+2], b[negotiateLen+3] = 30, 30 }))
	require.NoError(t, err)
	assert.Len(t, n.Hashes, 30)

	_, err = (&Negotiate{Hashes: make([]Hash, 31)}).Marshal()
	require.Error(t, err)
}

func TestParseChallenge(t *testing.T) {
	good := (&Challenge{Transaction: 5, Hash: SHA384, Group: FFDHE2048, Sequence: 1, Value: make([]byte, 48),
		Public: make([]byte, 256)}).Marshal()
	with := func(at int, v byte) []byte {
		b := append([]byte(nil), good...)
		b[at] = v
		return b
	}
	_, err := ParseChallenge(good)
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		b    []byte
		want Reason
	}{
		{"hash 0", with(8, 0), HashUnusable},
		{"hash 4", with(8, 4), HashUnusable},
		{"hash length of another", with(6, 32), IncorrectPayload},
		{"hash length 255", with(6, 255), IncorrectPayload},
		{"group 6", with(9, 6), GroupUnusable},
		{"a public value for the null group", with(9, 0), IncorrectPayload},
		{"no public value", with(11, 0), IncorrectPayload},
		{"a long public value", with(11, 0xff), IncorrectPayload},
		{"cut", good[:len(good)-1], IncorrectPayload},
		{"longer than any", append(good, make([]byte, MaxMessage)...), IncorrectPayload},
	} {
		_, err := ParseChallenge(c.b)
		require.ErrorIs(t, err, c.want, c.name)
	}
}

func TestParseReply(t *testing.T) {
	good := (&Reply{Response: make([]byte, 32), Challenge: make([]byte, 32), Sequence: 9}).Marshal()
	_, err := ParseReply(good, SHA256, NullGroup)
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		hash  Hash
		group Group
		at    int
		v     byte
	}{
		{"of another hash", SHA384, NullGroup, 0, 1},
		{"of another group", SHA256, FFDHE2048, 0, 1},
		{"another hash length", SHA256, NullGroup, 6, 31},
		{"a public value length", SHA256, NullGroup, 10, 1},
		{"challenge flag 2", SHA256, NullGroup, 8, 2},
		{"a challenge without a sequence number", SHA256, NullGroup, 12, 0},
	} {
		b := append([]byte(nil), good...)
		b[c.at] = c.v
		_, err := ParseReply(b, c.hash, c.group)
		require.ErrorIs(t, err, IncorrectPayload, c.name)
	}
	good[8] = 0
	r, err := ParseReply(good, SHA256, NullGroup)
	require.NoError(t, err, "Linux 6.12 numbers a challenge that it does not make")
	assert.Nil(t, r.Challenge)
}

// Targets differ in whether Success1 has a place for the response where there is none.
func TestParseSuccess1(t *testing.T) {
	long := (&Success1{Transaction: 3, Hash: SHA256}).Marshal()
	for _, b := range [][]byte{long, long[:success1Len]} {
		s, err := ParseSuccess1(b, SHA256)
		require.NoError(t, err)
		assert.Nil(t, s.Response)
	}
	long[8] = 1
	_, err := ParseSuccess1(long[:len(long)-1], SHA256)
	require.ErrorIs(t, err, IncorrectPayload)
	long[8] = 2
	_, err = ParseSuccess1(long, SHA256)
	require.ErrorIs(t, err, IncorrectPayload)
	_, err = ParseSuccess1((&Success1{Hash: SHA384}).Marshal(), SHA256)
	require.ErrorIs(t, err, IncorrectPayload)
}

func TestParseFailure(t *testing.T) {
	for _, id := range []MessageID{MessageFailure1, MessageFailure2} {
		m := &FailureMessage{id, 77, GroupUnusable}
		got, err := ParseFailure(append(m.Marshal(), 0, 0, 0))
		require.NoError(t, err)
		assert.Equal(t, m, got)
		_, err = ParseFailure(m.Marshal()[:7])
		require.ErrorIs(t, err, IncorrectPayload)
	}
	_, err := ParseFailure((&Success2{}).Marshal())
	require.ErrorIs(t, err, IncorrectMessage)
	_, err = ParseFailure(nil)
	require.ErrorIs(t, err, IncorrectPayload)
}

package auth

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sweep reports whether the long checks were asked for: MILLRACE_SWEEP=1 go test ./nvme/auth
func sweep() bool { return os.Getenv("MILLRACE_SWEEP") != "" }

type hexBytes []byte

func (h *hexBytes) UnmarshalText(b []byte) (err error) {
	*h, err = hex.DecodeString(string(b))
	return err
}

// vector is a transaction that testdata/runs.py computed.
type vector struct {
	Name             string
	Hash             Hash
	Group            Group
	HostNQN          string   `json:"host_nqn"`
	SubsystemNQN     string   `json:"subsystem_nqn"`
	HostKey          string   `json:"host_key"`
	ControllerKey    string   `json:"controller_key"`
	Transaction      uint16   `json:"transaction"`
	S1, S2           uint32   //
	ControllerRandom hexBytes `json:"controller_random"`
	HostRandom       hexBytes `json:"host_random"`
	Negotiate        hexBytes
	Challenge        hexBytes
	Reply            hexBytes
	Success1         hexBytes
	Success2         hexBytes
}

func readVectors(t testing.TB) []vector {
	b, err := os.ReadFile("testdata/runs.json")
	require.NoError(t, err)
	var v []vector
	require.NoError(t, json.Unmarshal(b, &v))
	require.NotEmpty(t, v)
	return v
}

// machines are the two sides that repeat the vector's run: what is random in them is the vector's.
func (v *vector) machines(t testing.TB) (*Host, *Controller) {
	key, err := ParseKey(v.HostKey)
	require.NoError(t, err)
	var ctrlKey Key
	if v.ControllerKey != "" {
		ctrlKey, err = ParseKey(v.ControllerKey)
		require.NoError(t, err)
	}
	h, err := NewHost(HostOptions{HostNQN: v.HostNQN, SubsystemNQN: v.SubsystemNQN, Key: key, ControllerKey: ctrlKey,
		Hashes: []Hash{v.Hash}, Groups: []Group{v.Group}, Transaction: v.Transaction, Sequence: &Sequence{last: v.S2 - 1}})
	require.NoError(t, err)
	h.random = bytes.NewReader(v.HostRandom)
	c, err := NewController(ControllerOptions{HostNQN: v.HostNQN, SubsystemNQN: v.SubsystemNQN, Key: key,
		ControllerKey: ctrlKey,
		Sequence:      &Sequence{last: v.S1 - 1}})
	require.NoError(t, err)
	c.random = bytes.NewReader(v.ControllerRandom)
	return h, c
}

// Every message of both sides, byte for byte as an independent program computed it.
func TestKnownAnswers(t *testing.T) {
	seen := map[Agreed]bool{}
	for _, v := range readVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			h, c := v.machines(t)
			step := func(step func([]byte) ([]byte, bool, error), in, want []byte, over bool) {
				t.Helper()
				out, done, err := step(in)
				require.NoError(t, err)
				require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(out))
				require.Equal(t, over, done)
			}
			both := v.ControllerKey != ""
			step(h.Step, nil, v.Negotiate, false)
			step(c.Step, v.Negotiate, v.Challenge, false)
			step(h.Step, v.Challenge, v.Reply, false)
			step(c.Step, v.Reply, v.Success1, !both)
			step(h.Step, v.Success1, v.Success2, true)
			if both {
				step(c.Step, v.Success2, nil, true)
			}
			assert.Equal(t, Authenticated, h.state)
			assert.Equal(t, Authenticated, c.state)
			assert.Equal(t, Agreed{v.Hash, v.Group}, h.Agreed())
			assert.Equal(t, h.Agreed(), c.Agreed())
			seen[h.Agreed()] = seen[h.Agreed()] || both
		})
	}
	assert.Len(t, seen, 3*6, "every hash with every group")
}

// The messages of the vectors survive parsing and laying out again.
func TestVectorsRoundTrip(t *testing.T) {
	for _, v := range readVectors(t) {
		padded := func(b []byte) []byte { return append(bytes.Clone(b), make([]byte, 100)...) }
		n, err := ParseNegotiate(v.Negotiate)
		require.NoError(t, err)
		b, err := n.Marshal()
		require.NoError(t, err)
		assert.Equal(t, []byte(v.Negotiate), b)
		c, err := ParseChallenge(padded(v.Challenge))
		require.NoError(t, err)
		assert.Equal(t, []byte(v.Challenge), c.Marshal())
		r, err := ParseReply(v.Reply, v.Hash, v.Group)
		require.NoError(t, err)
		assert.Equal(t, []byte(v.Reply), r.Marshal())
		s, err := ParseSuccess1(padded(v.Success1), v.Hash)
		require.NoError(t, err)
		assert.Equal(t, []byte(v.Success1), s.Marshal())
		if len(v.Success2) > 0 {
			s, err := ParseSuccess2(v.Success2)
			require.NoError(t, err)
			assert.Equal(t, []byte(v.Success2), s.Marshal())
		}
	}
}

package ticket

import (
	"bytes"
	"crypto/ed25519"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfATicket holds a signed ticket's bytes: a leader of one version signs what nodes of another verify.
func TestFormOfATicket(t *testing.T) {
	signer := &Signer{id: 11, key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, ed25519.SeedSize))}
	b, err := signer.Sign(good())
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/ticket.v1.hex", b)

	got, raw, signature, err := decode(apiv1.EncodeTicket(goldenfile.Read(t, "testdata/ticket.v1.hex")))
	require.NoError(t, err)
	want := good()
	want.Key = 11
	assert.True(t, proto.Equal(want, got), "%v", got)
	assert.True(t, ed25519.Verify(signer.Key().PublicKey, signedBytes(raw), signature))
}

package csd

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/nvme/controller"
)

// TestFormOfTheState holds PATH.json, which lies beside a drive's flash for as long as the drive lives, and reads the
// kept file again.
func TestFormOfTheState(t *testing.T) {
	s := &state{
		Version: StateVersion, UUID: uuid.MustParse("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d"), Size: 4 << 30, LBA: 4096,
		Active: 1, Image: image.ID{1, 31: 2}, Previous: mark{Slot: 2, Image: image.ID{3}},
		Trust: image.Trust{
			Policy: image.PolicyRequire, Keys: []ed25519.PublicKey{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7},
				ed25519.SeedSize)).Public().(ed25519.PublicKey)},
			RevokedKeys: []image.KeyID{{4}}, RevokedImages: []image.ID{{5}},
		},
		Lost: &lostRange{From: 4096, To: 8192}, Clean: true,
		Counters: controller.Counters{
			SectorsRead: 1, SectorsWritten: 2, HostReads: 3, HostWrites: 4, Busy: 5, PowerCycles: 6, PowerOn: 7,
			UnsafeShutdowns: 8, MediaErrors: 9, Errors: 10,
		},
	}
	b, err := json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/state.v2.json", string(b)+"\n")
	kept, err := os.ReadFile("testdata/state.v2.json")
	require.NoError(t, err)
	got, err := parseState(kept)
	require.NoError(t, err)
	assert.Equal(t, s, got)
}

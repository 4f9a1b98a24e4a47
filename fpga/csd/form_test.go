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
	"github.com/millrace/millrace/nvme/cs"
)

// TestFormOfTheState holds PATH.json, which lies beside a drive's flash for as long as the drive lives, and reads the
// kept file again.
func TestFormOfTheState(t *testing.T) {
	s := &state{
		Version: 2, UUID: uuid.MustParse("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d"), Size: 4 << 30, LBA: 4096,
		regionState: regionState{Active: 1, Image: image.ID{1, 31: 2}, Previous: mark{Slot: 2, Image: image.ID{3}}},
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
	readsAgain(t, "testdata/state.v2.json", s)

	s.Further = []regionState{{Active: 2, Image: image.ID{3}}, {Image: image.ID{1, 31: 2}, Previous: mark{Slot: 3}}}
	s.Version = s.version()
	b, err = json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/state.v3.json", string(b)+"\n")
	readsAgain(t, "testdata/state.v3.json", s)
}

// readsAgain demands that a kept file is the form of a state.
func readsAgain(t *testing.T, file string, s *state) {
	t.Helper()
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	got, err := parseState(kept)
	require.NoError(t, err)
	assert.Equal(t, s, got)
}

// TestStatesOfRegionsAreChecked holds the bounds of the regions in PATH.json.
func TestStatesOfRegionsAreChecked(t *testing.T) {
	parse := func(change func(*state)) error {
		s := &state{UUID: uuid.MustParse("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d"), Size: 1 << 20, LBA: 512}
		s.setRegions(cs.MaxRegions)
		s.Version = s.version()
		change(s)
		b, err := json.Marshal(s)
		require.NoError(t, err)
		_, err = parseState(b)
		return err
	}
	require.NoError(t, parse(func(*state) {}), "as many regions as may be")
	require.NoError(t, parse(func(s *state) { s.Further[5].Active, s.Further[5].Previous.Slot = 3, 3 }))
	require.NoError(t, parse(func(s *state) { s.Further, s.Version = nil, 2 }))
	require.ErrorContains(t, parse(func(s *state) { s.Further = append(s.Further, regionState{}) }), "7 further regions")
	require.ErrorContains(t, parse(func(s *state) { s.Version = 2 }), "version 2 with 6 further regions")
	require.ErrorContains(t, parse(func(s *state) { s.Version = 4 }), "version 4")
	require.ErrorContains(t, parse(func(s *state) { s.Further[5].Active = 4 }), "region 6: active slot 4")
	require.ErrorContains(t, parse(func(s *state) { s.Further[0].Active = -2 }), "region 1: active slot -2")
	require.ErrorContains(t, parse(func(s *state) { s.Further[1].Previous.Slot = 4 }), "region 2: previous slot 4")
	require.ErrorContains(t, parse(func(s *state) { s.Further[1].Previous.Slot = -1 }), "region 2: previous slot -1")
}

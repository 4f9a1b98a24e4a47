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

	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/fpga/csd/images"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/nvme/controller/health"
	"github.com/millrace/millrace/nvme/cs"
)

// TestFormOfTheState holds PATH.json, which lies beside a drive's flash for as long as the drive lives, and reads the
// kept file again.
func TestFormOfTheState(t *testing.T) {
	s := &state{
		Version: 2, UUID: uuid.MustParse("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d"), Size: 4 << 30, LBA: 4096,
		Kept: images.Kept{Active: 1, Image: image.ID{1, 31: 2}, Previous: images.Mark{Slot: 2, Image: image.ID{3}}},
		Trust: image.Trust{
			Policy: image.PolicyRequire, Keys: []ed25519.PublicKey{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7},
				ed25519.SeedSize)).Public().(ed25519.PublicKey)},
			RevokedKeys: []image.KeyID{{4}}, RevokedImages: []image.ID{{5}},
		},
		Lost: &flash.Range{From: 4096, To: 8192}, Clean: true,
		Counters: health.Counters{
			SectorsRead: 1, SectorsWritten: 2, HostReads: 3, HostWrites: 4, Busy: 5, PowerCycles: 6, PowerOn: 7,
			UnsafeShutdowns: 8, MediaErrors: 9, Errors: 10,
		},
	}
	b, err := json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/state.v2.json", string(b)+"\n")
	readsAgain(t, "testdata/state.v2.json", s)

	s.Further = []images.Kept{{Active: 2, Image: image.ID{3}}, {Image: image.ID{1, 31: 2}, Previous: images.Mark{Slot: 3}}}
	s.Version = s.neededVersion()
	b, err = json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/state.v3.json", string(b)+"\n")
	readsAgain(t, "testdata/state.v3.json", s)

	s.HostIOShare, s.Weights = 20, []int{2, 1, 16}
	s.Version = s.neededVersion()
	b, err = json.MarshalIndent(s, "", "  ")
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/state.v4.json", string(b)+"\n")
	readsAgain(t, "testdata/state.v4.json", s)
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
		s.Version = s.neededVersion()
		change(s)
		b, err := json.Marshal(s)
		require.NoError(t, err)
		_, err = parseState(b)
		return err
	}
	require.NoError(t, parse(func(*state) {}), "as many regions as may be")
	require.NoError(t, parse(func(s *state) { s.Further[5].Active, s.Further[5].Previous.Slot = 3, 3 }))
	require.NoError(t, parse(func(s *state) { s.Further, s.Version = nil, 2 }))
	require.ErrorContains(t, parse(func(s *state) { s.Further = append(s.Further, images.Kept{}) }), "7 further regions")
	require.ErrorContains(t, parse(func(s *state) { s.Version = 2 }), "version 2 with 6 further regions")
	require.NoError(t, parse(func(s *state) { s.Version = 4 }), "a drive that had a limit")
	require.ErrorContains(t, parse(func(s *state) { s.Version = 5 }), "version 5")
	for share, valid := range map[int]bool{4: false, 5: true, 99: true, 100: false, -1: false} {
		err := parse(func(s *state) { s.HostIOShare, s.Version = share, 4 })
		require.Equal(t, valid, err == nil, "%d %%: %v", share, err)
	}
	require.ErrorContains(t, parse(func(s *state) { s.HostIOShare, s.Version = 20, 3 }), "version 3 with a share")
	for says, weights := range map[string][]int{
		"": {1, 2, 3, 4, 5, 6, 16}, "6 weights for 7 regions": {1, 1, 1, 1, 1, 1},
		"region 0 of weight 0": {0, 1, 1, 1, 1, 1, 1}, "region 6 of weight 17": {1, 1, 1, 1, 1, 1, 17},
	} {
		err := parse(func(s *state) { s.Weights, s.Version = weights, 4 })
		if says == "" {
			require.NoError(t, err, "%v", weights)
		} else {
			require.ErrorContains(t, err, says)
		}
	}
	require.ErrorContains(t, parse(func(s *state) { s.Weights, s.Version = []int{2, 1, 1, 1, 1, 1, 1}, 3 }),
		"version 3 with weights")
	require.ErrorContains(t, parse(func(s *state) { s.Weights, s.Further, s.Version = []int{2}, nil, 4 }),
		"1 weights for 1 regions")
	require.ErrorContains(t, parse(func(s *state) { s.Further[5].Active = 4 }), "region 6: active slot 4")
	require.ErrorContains(t, parse(func(s *state) { s.Further[0].Active = -2 }), "region 1: active slot -2")
	require.ErrorContains(t, parse(func(s *state) { s.Further[1].Previous.Slot = 4 }), "region 2: previous slot 4")
	require.ErrorContains(t, parse(func(s *state) { s.Further[1].Previous.Slot = -1 }), "region 2: previous slot -1")
}

package image

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDiff(t *testing.T) {
	a := parsed(t, built(t, sample()))
	assert.Empty(t, Diff(a, a))

	s := sample()
	s.Time++
	s.Clocks[0].Granted = 200000
	s.Units = append(s.Units, Unit{Number: 9, Name: "text", Version: 2, Lanes: 1})
	s.Kernels[0].Args = []string{"add"}
	s.SelfTest[0].Output = make([]byte, 300)
	s.User = nil
	b := parsed(t, built(t, s))
	key, _ := keyPair(1)
	signed, err := b.Sign(key)
	require.NoError(t, err)
	b = parsed(t, signed)
	got := Diff(a, b)
	var lines []string
	for _, d := range got {
		lines = append(lines, d.Section+" "+d.Path)
	}
	assert.Equal(t, []string{
		"HEADER image_id", "HEADER time", "UNITS text.lanes", "UNITS text.name", "UNITS text.number", "UNITS text.source",
		"UNITS text.version",
		"CLOCKS kernel.granted_khz", "KERNELS log.args", "KERNELS log.args.0", "SELFTEST log.output", "USER bytes",
		"USER sha256",
		"SIGNATURE key", "SIGNATURE signature",
	}, lines)
	assert.Equal(t, Difference{"CLOCKS", "kernel.granted_khz", "223000", "200000"}, got[7])
	assert.Equal(t, Difference{"KERNELS", "log.args", "none", ""}, got[8])
	assert.Contains(t, got[10].Is, "400 characters, SHA-256")
	for i, d := range Diff(b, a) {
		assert.Equal(t, Difference{got[i].Section, got[i].Path, got[i].Is, got[i].Was}, d, "the other way round")
	}
}

func TestASignatureIsAllThatSigningChanges(t *testing.T) {
	a := parsed(t, built(t, sample()))
	key, _ := keyPair(1)
	signed, err := a.Sign(key)
	require.NoError(t, err)
	for _, d := range Diff(a, parsed(t, signed)) {
		assert.Equal(t, "SIGNATURE", d.Section)
	}
}

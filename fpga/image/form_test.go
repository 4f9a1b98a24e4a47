package image

import (
	"bytes"
	"crypto/ed25519"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfAnImage holds the bytes of an image with every section, unsigned and signed: one sequence of bytes belongs
// to one specification, and a signature covers those bytes.
func TestFormOfAnImage(t *testing.T) {
	unsigned := built(t, sample())
	goldenfile.Bytes(t, "testdata/image.v1.hex", unsigned)
	m, err := Parse(goldenfile.Read(t, "testdata/image.v1.hex"))
	require.NoError(t, err)
	assert.Equal(t, *sample(), m.Spec)

	signed, err := m.Sign(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)))
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/signed.v1.hex", signed)
}

// TestFormOfTheLogPage holds the bytes of log page C1h, which hosts of other versions read.
func TestFormOfTheLogPage(t *testing.T) {
	b, err := sampleLogPage().Marshal(77)
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/logpage.v1.hex", b)
	r, err := ParseLogPage(goldenfile.Read(t, "testdata/logpage.v1.hex"))
	require.NoError(t, err)
	assert.Equal(t, sampleLogPage(), r)

	b, err = sampleOfRegions().Marshal(2)
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/logpage.regions.v1.hex", b)
	r, err = ParseLogPage(goldenfile.Read(t, "testdata/logpage.regions.v1.hex"))
	require.NoError(t, err)
	assert.Equal(t, sampleOfRegions(), r)
}

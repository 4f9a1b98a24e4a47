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

// TestFormOfAReport holds the bytes of log page C1h, which hosts of other versions read.
func TestFormOfAReport(t *testing.T) {
	b, err := sampleReport().Marshal(77)
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/report.v1.hex", b)
	r, err := ParseReport(goldenfile.Read(t, "testdata/report.v1.hex"))
	require.NoError(t, err)
	assert.Equal(t, sampleReport(), r)
}

package private

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfTheMessages holds the bytes of a message of every kind, which a Python package and a binary of different
// builds exchange, and reads the bytes that an earlier build wrote.
func TestFormOfTheMessages(t *testing.T) {
	const path = "testdata/messages.v1.hex"
	var written []byte
	for _, m := range samples() {
		b, err := Encode(m)
		require.NoError(t, err)
		written = append(written, b...)
	}
	goldenfile.Bytes(t, path, written)
	kept := bytes.NewReader(goldenfile.Read(t, path))
	for _, want := range samples() {
		got, err := Read(kept)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	assert.Zero(t, kept.Len())
}

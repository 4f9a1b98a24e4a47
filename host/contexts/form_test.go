package contexts

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfTheFile holds contexts.yaml as it is written; the Python package reads the same file.
func TestFormOfTheFile(t *testing.T) {
	f, err := Parse([]byte(whole))
	require.NoError(t, err)
	b, err := f.Bytes()
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/contexts.yaml", string(b))
	kept, err := os.ReadFile("testdata/contexts.yaml")
	require.NoError(t, err)
	again, err := Parse(kept)
	require.NoError(t, err)
	assert.Equal(t, f, again)
}

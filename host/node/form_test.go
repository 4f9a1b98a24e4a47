package node

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/internal/strictyaml"
)

// TestFormOfTheConfiguration reads a node.yaml in which an earlier build's operator set every key that is not an
// address or path of a machine, and holds what was understood: a key that goes, or means something else, fails here.
func TestFormOfTheConfiguration(t *testing.T) {
	b, err := os.ReadFile("testdata/node.yaml")
	require.NoError(t, err)
	c, err := ParseConfig(b)
	require.NoError(t, err)
	require.NoError(t, c.Check())
	assert.Equal(t, "n1", c.Name)
	goldenfile.Text(t, "testdata/node.understood.yaml", printed(c))
}

// printed is a configuration as a document without comments.
func printed(c Config) string {
	var b strings.Builder
	for line := range strings.Lines(string(strictyaml.Print(c))) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			line, _, _ = strings.Cut(line, " #")
			b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}

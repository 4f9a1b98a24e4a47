package worker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/internal/strictyaml"
)

// TestFormOfTheConfiguration reads a worker.yaml in which an operator of an earlier build set every key but a drive and
// the files of a TLS identity, and compares the resulting configuration with the kept one. A key that is gone, or has
// another meaning, fails the test.
func TestFormOfTheConfiguration(t *testing.T) {
	c, err := ReadConfig("testdata/worker.yaml")
	require.NoError(t, err)
	var understood strings.Builder
	for line := range strings.Lines(string(strictyaml.Print(c))) {
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			line, _, _ = strings.Cut(line, " #")
			understood.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	goldenfile.Text(t, "testdata/worker.understood.yaml", understood.String())
	require.NoError(t, c.Check())
	assert.Equal(t, "w1", c.Name)
}

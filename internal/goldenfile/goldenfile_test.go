package goldenfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a test that notes its failure and goes on, so that a failure can be tested.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) { r.failure += "fatal" }

func (r *recorder) Fatalf(format string, args ...any) { r.failure += format }

func TestBytesAreKeptAsHexadecimalLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "testdata", "form.v1.hex")
	b := make([]byte, lineBytes+2)
	b[lineBytes], b[lineBytes+1] = 0xab, 0xcd
	t.Setenv("MILLRACE_UPDATE", "1")
	Bytes(t, path, b)
	t.Setenv("MILLRACE_UPDATE", "")
	Bytes(t, path, b)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Regexp(t, `\A0{64}\nabcd\n\z`, string(text))
	assert.Equal(t, b, Read(t, path))
}

func TestADifferenceFails(t *testing.T) {
	t.Setenv("MILLRACE_UPDATE", "")
	path := filepath.Join(t.TempDir(), "form.txt")
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o644))
	for made, fails := range map[string]bool{"one\ntwo\n": false, "one\n": true, "one\ntwo\nthree\n": true,
		"one\n2\n": true, "": true} {
		r := &recorder{TB: t}
		Text(r, path, made)
		assert.Equal(t, fails, r.failure != "", "%q", made)
	}
	r := &recorder{TB: t}
	Text(r, path+".missing", "")
	assert.NotEmpty(t, r.failure, "a file that is missing is a failure")
}

func TestFirstDifference(t *testing.T) {
	assert.Equal(t, 2, firstDifference("a\nb\nc", "a\nx\nc"))
	assert.Equal(t, 3, firstDifference("a\nb", "a\nb\nc"))
	assert.Equal(t, 1, firstDifference("", "a"))
}

func TestBlocks(t *testing.T) {
	echo := func(command string) string {
		if command == "quiet" {
			return ""
		}
		return command + "!\n"
	}
	assert.Equal(t, "# a comment\na\nb\n----\na!\nb!\n\nquiet\n\nquiet\n----\nok\n",
		Blocks("# a comment\na\nb\n----\nwhat it was\n\nquiet\n\nquiet\n----\n", echo))
}

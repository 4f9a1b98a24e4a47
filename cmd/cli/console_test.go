package cli

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReportsAreAsTheyWereBesideTheirVersion(t *testing.T) {
	head := fmt.Sprintf("{\n  \"version\": %q", version())
	for _, c := range []struct {
		v    any
		want string
	}{
		{struct{}{}, head + "\n}\n"},
		{map[string]string{"a": "<é>"}, head + ",\n  \"a\": \"<é>\"\n}\n"},
		{[]struct{}{}, "[]\n"},
		{[]int(nil), "null\n"},
		{[]int{1}, "[\n  1\n]\n"},
	} {
		var b bytes.Buffer
		require.NoError(t, (&Console{Streams: Streams{Out: &b}, Output: "json"}).Report(c.v, nil))
		assert.Equal(t, c.want, b.String())
	}
	var b bytes.Buffer
	c := &Console{Streams: Streams{Out: &b}, Output: "table"}
	require.NoError(t, c.Report(1, func(w io.Writer) { fmt.Fprintln(w, "as it is") }))
	assert.Equal(t, "as it is\n"+VersionLine()+"\n", b.String())
}

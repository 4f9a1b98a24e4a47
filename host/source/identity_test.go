package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/source"
)

func ExampleIdentity() {
	pinned := source.Identity{Kind: source.ByETag, Value: `"5eb63bbb"`, Size: 1 << 20}
	again, err := source.ParseIdentity(pinned.String())
	fmt.Println(pinned, again == pinned, err)
	// Output: etag:1048576:"5eb63bbb" true <nil>
}

func TestIdentityReturnsFromItsText(t *testing.T) {
	for _, id := range []source.Identity{
		{},
		{Kind: source.ByETag, Value: `"a:b"`, Size: 0},
		{Kind: source.ByVersion, Value: "3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY", Size: 1<<63 - 1},
		{Kind: source.ByFile, Value: "64769-1314-1750000000000000000", Size: 7},
		{Kind: source.ByContent, Value: strings.Repeat("0f", 32), Size: 12},
	} {
		again, err := source.ParseIdentity(id.String())
		require.NoError(t, err)
		assert.Equal(t, id, again)
	}
}

func TestIdentityRefuses(t *testing.T) {
	most := `etag:1:` + strings.Repeat("x", 2048-len("etag:1:"))
	_, err := source.ParseIdentity(most)
	require.NoError(t, err)
	for _, s := range []string{
		most + "x", "etag", "etag:1", "etag:1:", "md5:1:x", "etag:-1:x", "etag:01:x", "etag:+1:x", "etag:x:y",
		"etag:9223372036854775808:x", "etag:1:x\ny", ":1:x",
	} {
		_, err := source.ParseIdentity(s)
		require.ErrorIs(t, err, source.ErrIdentity, "%.40q", s)
		assert.Less(t, len(err.Error()), 300)
	}
}

func FuzzParseIdentity(f *testing.F) {
	f.Add(`etag:1048576:"5eb63bbb"`)
	f.Add("file:0:1-2-3")
	f.Add("version:9223372036854775807:x:y")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := source.ParseIdentity(s)
		if err != nil {
			require.ErrorIs(t, err, source.ErrIdentity)
			return
		}
		require.Equal(t, s, id.String())
		require.GreaterOrEqual(t, id.Size, int64(0))
	})
}

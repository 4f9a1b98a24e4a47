package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNameFiles(t *testing.T) {
	t.Chdir("/")
	for name, c := range map[string]struct{ paths, want []string }{
		"none":            {[]string{}, []string{}},
		"base names":      {[]string{"/d/a.parquet", "/e/f/b.parquet"}, []string{"a.parquet", "b.parquet"}},
		"URIs":            {[]string{"https://h/d/a%20b?x", "s3://bucket/a%20b"}, []string{"a b", "a%20b"}},
		"a folder a day":  {[]string{"/d/day=1/0", "/d/day=2/0", "/d/day=2/1"}, []string{"day=1/0", "day=2/0", "day=2/1"}},
		"two depths":      {[]string{"/d/0", "/d/e/0"}, []string{"0", "e/0"}},
		"half a name":     {[]string{"/d/day=1/0", "/d/day=11/0"}, []string{"day=1/0", "day=11/0"}},
		"nothing shared":  {[]string{"/a/0", "/b/0"}, []string{"a/0", "b/0"}},
		"relative":        {[]string{"a/../d/x/0", "/d/y/0"}, []string{"x/0", "y/0"}},
		"of a bucket":     {[]string{"s3://b/day=1/0", "s3://b/day=2/0"}, []string{"day=1/0", "day=2/0"}},
		"of a web server": {[]string{"https://h:1/x%20y/0", "HTTPS://H:1/z/0"}, []string{"x y/0", "z/0"}},
	} {
		got, err := NameFiles(c.paths)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
	for says, paths := range map[string][]string{
		"/d/a and d/a are the same file": {"/d/a", "d/a"},
		"same base name":                 {"https://h/a", "s3://b/a"},
		"different places":               {"s3://b/a", "s3://c/a"},
		"/x/a and https://h/a":           {"/x/a", "https://h/a"},
	} {
		_, err := NameFiles(paths)
		assert.ErrorContains(t, err, says)
	}
}

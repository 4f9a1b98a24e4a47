package filename

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/source"
)

func TestNameEach(t *testing.T) {
	t.Chdir("/")
	for name, c := range map[string]struct{ paths, want []string }{
		"none":               {[]string{}, []string{}},
		"base names":         {[]string{"/d/a.parquet", "/e/f/b.parquet"}, []string{"a.parquet", "b.parquet"}},
		"URIs":               {[]string{"https://h/d/a%20b?x", "s3://bucket/a%20b"}, []string{"a b", "a%20b"}},
		"a day alone":        {[]string{"/d/day=1/0"}, []string{"day=1/0"}},
		"beside another day": {[]string{"/d/day=1/0", "/d/day=2/0", "/d/1"}, []string{"day=1/0", "day=2/0", "1"}},
		"an hour of a day":   {[]string{"/d/day=1/hour=2/0"}, []string{"day=1/hour=2/0"}},
		"a day not above":    {[]string{"/d/day=1/x/0"}, []string{"0"}},
		"no key":             {[]string{"/d/=1/0"}, []string{"0"}},
		"relative":           {[]string{"a/../d/x=1/0", "0"}, []string{"x=1/0", "0"}},
		"of a bucket":        {[]string{"s3://b/day=1/0", "s3://c/day=2/0"}, []string{"day=1/0", "day=2/0"}},
		"of a web server":    {[]string{"https://h:1/x%3D%20y/0", "HTTPS://H:1/z/1"}, []string{"x= y/0", "1"}},
	} {
		got, err := NameEach(source.ParseLocations(c.paths...))
		require.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
	for says, paths := range map[string][]string{
		"d/a is there twice":                                           {"/d/a", "d/a"},
		"s3://b/a is there twice":                                      {"s3://b/a", "s3://b/a"},
		"/x/a and /y/a would both be called a":                         {"/x/a", "/y/a"},
		"https://h/a and s3://b/a would both be called a":              {"https://h/a", "s3://b/a"},
		"in which folder the data set begins (--root FOLDER, root= in": {"/x/a", "https://h/a"},
	} {
		_, err := NameEach(source.ParseLocations(paths...))
		require.ErrorIs(t, err, ErrNames)
		assert.ErrorContains(t, err, says)
	}
}

// TestNamesBeginWithTheDataSet checks that a file has one name, however it is found.
func TestNamesBeginWithTheDataSet(t *testing.T) {
	t.Chdir("/")
	for _, c := range []struct{ argument, file, root, want string }{
		{"/d", "/d/0", "", "0"},
		{"/d/", "/d/0", "", "0"},
		{".", "0", "", "0"},
		{"/d/day=1", "/d/day=1/0", "", "day=1/0"},
		{"/d/day=1/*", "/d/day=1/0", "", "day=1/0"},
		{"/d/day=*", "/d/day=1/0", "", "day=1/0"},
		{"/d/*/0", "/d/day=1/0", "", "day=1/0"},
		{"d/day=?/*", "d/day=1/0", "", "day=1/0"},
		{"/d/*", "/d/x/0", "", "x/0"},
		{"day_*", "day_1", "", "day_1"},
		{"/d[1]/a[1]", "/d[1]/a[1]", "", "a[1]"},
		{"s3://b/d/day=1/", "s3://b/d/day=1/0", "", "day=1/0"},
		{"s3://b/d/*/0", "s3://b/d/day=1/0", "", "day=1/0"},
		{"s3://b/day_*", "s3://b/day_1", "", "day_1"},
		{"s3://b", "s3://b/x", "", "x"},
		{"/d/x/0", "/d/x/0", "/d", "x/0"},
		{"/d/day=1/0", "/d/day=1/0", "/d/day=1", "0"},
		{"s3://b/d/x/*", "s3://b/d/x/0", "s3://b/d/", "x/0"},
		{"https://h/d/x/0?k=v", "https://h/d/x/0?k=v", "https://h/d", "x/0"},
	} {
		got, err := NameFound(source.ParseLocation(c.argument), source.ParseLocations(c.file), source.ParseLocation(c.root))
		require.NoError(t, err, c)
		assert.Equal(t, []File{{Location: source.ParseLocation(c.file), Name: c.want}}, got, c)
	}
	for _, root := range []string{"/e", "/d/x/0", "s3://b/d"} {
		_, err := NameFound(source.ParseLocation("/d/x/0"), source.ParseLocations("/d/x/0"), source.ParseLocation(root))
		require.ErrorIs(t, err, ErrNames)
		assert.ErrorContains(t, err, "/d/x/0 does not lie below "+root)
	}
}

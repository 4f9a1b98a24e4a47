package source

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// announced are URIs and what CheckAnnounced says of them; empty: they may be announced.
var announced = map[string]string{
	"https://data.example/rows/a.parquet":               "",
	"http://127.0.0.1:9000/a%20b":                       "",
	"HTTPS://Data.Example/a":                            "",
	"s3://rows/2026/a b?.parquet":                       "",
	"s3://rows/a..b/...":                                "",
	"https://h/" + strings.Repeat("k", maxAnnounced-10): "",
	"https://h/" + strings.Repeat("k", maxAnnounced-9):  "it has 4097 bytes, at most 4096",
	"":                                     "not the URL of a store",
	"/etc/passwd":                          "not the URL of a store",
	"file:///etc/passwd":                   "not the URL of a store",
	"file:/etc/passwd":                     "not the URL of a store",
	"http:/h/a":                            "not the URL of a store",
	"gopher://h/a":                         "not the URL of a store",
	"https://u@h/a":                        "a user name",
	"https://u:secret@h/a":                 "a user name",
	"s3://key:secret@rows/a":               "a user name",
	"https://h/a?X-Amz-Signature=secret":   "a query",
	"https://h/a#secret":                   "a fragment",
	"https://h/a\r\nHost: x":               "a control character",
	"https://*.example/a":                  "one host",
	"s3:///a":                              "one host",
	"s3://*/a":                             "one host",
	"https://h":                            "names no object",
	"https://h/":                           "names no object",
	"s3://rows":                            "names no object",
	"s3://rows/2026/":                      "names no object",
	"https:///a":                           "one host",
	"https://:443/a":                       "one host",
	"https://h:x/a":                        "one host",
	"https://h/rows/../secret/a":           "a segment . or ..",
	"https://h/rows/%2e%2e/secret/a":       "a segment . or ..",
	"https://h/rows/..%2fsecret/a":         "a segment . or ..",
	`https://h/rows/..\secret/a`:           "a segment . or ..",
	"https://h/rows/..;x/secret/a":         "a segment . or ..",
	"https://h/rows/%zz/a":                 "a segment . or ..",
	"s3://rows/../other/a":                 "a segment . or ..",
	"http://169.254.169.254/latest/a":      "a link-local address",
	"http://[fe80::1]/a":                   "a link-local address",
	"http://[fe80::1%25eth0]/a":            "a link-local address",
	"http://[::ffff:169.254.169.254]:80/a": "a link-local address",
	"http://[::ffff:a9fe:a9fe]/a":          "a link-local address",
	"http://100.100.100.200/a":             "a link-local address",
}

func TestCheckAnnounced(t *testing.T) {
	for uri, want := range announced {
		err := ParseLocation(uri).CheckAnnounced()
		if want == "" {
			assert.NoError(t, err, "%.80q", uri)
			continue
		}
		var refused *UnsupportedError
		require.ErrorAs(t, err, &refused, "%.80q", uri)
		assert.ErrorContains(t, err, want, "%.80q", uri)
		assert.NotContains(t, err.Error(), "secret@", uri)
		assert.NotContains(t, err.Error(), "=secret", uri)
	}
}

// FuzzCheckAnnounced: a URI that may be announced is sent as it is, to its own host, and lies in its own folder.
func FuzzCheckAnnounced(f *testing.F) {
	for uri := range announced {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		if ParseLocation(uri).CheckAnnounced() != nil {
			return
		}
		folder := ParseLocation(uri).Folder()
		require.NoError(t, Prefixes{folder}.Check())
		require.True(t, Prefixes{folder}.Allow(ParseLocation(uri)))
		if ParseLocation(uri).Scheme() == "s3" {
			return
		}
		req, err := http.NewRequest(http.MethodGet, uri, http.NoBody)
		require.NoError(t, err)
		require.Nil(t, req.URL.User)
		require.Empty(t, req.URL.RawQuery)
		require.NotContains(t, strings.Split(req.URL.Path, "/"), "..")
	})
}

func TestPrefixes(t *testing.T) {
	for prefix, valid := range map[string]bool{
		"s3://rows/": true, "s3://rows/2026": true, "https://data.example/": true, "http://[::1]:80/a/": true,
		"s3://rows": false, "https://data.example": false, "https://data.example:443": false, "https:///": false,
		"/rows/": false, "file:///rows/": false, "s3://rows/*.parquet": false, "https://u:p@h/": false, "https://h/?a": false,
		"https://h/a/../": false, "": false,
	} {
		assert.Equal(t, valid, Prefixes{prefix}.Check() == nil, prefix)
	}
	p := Prefixes{"s3://rows/2026/", "https://Data.example:443/rows/"}
	for uri, allowed := range map[string]bool{
		"s3://rows/2026/a": true, "S3://rows/2026/a/b": true, "s3://rows/2025/a": false, "s3://rows/2026": false,
		"s3://Rows/2026/a": false, "s3://rows/2026/../2025/a": false,
		"https://data.example/rows/a": true, "HTTPS://DATA.EXAMPLE:443/rows/a?signature=1": true,
		"http://data.example/rows/a": false, "https://data.example:8443/rows/a": false,
		"https://data.example.evil/rows/a": false, "https://data.example@evil/rows/a": false,
		"https://data.example/rows/%2e%2e/a": false, "https://data.example/Rows/a": false,
		"/rows/2026/a": false, "file:///rows/a": false,
	} {
		assert.Equal(t, allowed, p.Allow(ParseLocation(uri)), uri)
		assert.False(t, Prefixes{}.Allow(ParseLocation(uri)), uri)
	}
	for uri, folder := range map[string]string{
		"s3://rows": "s3://rows/", "s3://rows/": "s3://rows/", "s3://rows/day_*.parquet": "s3://rows/",
		"s3://rows/2026/[0-9]/a*": "s3://rows/2026/", "s3://rows/2026/a?": "s3://rows/2026/", "s3://rows/a/": "s3://rows/a/",
		"https://u:p@h/rows/a.parquet?x=/y/": "https://h/rows/", "https://h": "https://h/",
	} {
		assert.Equal(t, folder, ParseLocation(uri).Folder(), uri)
		assert.NoError(t, Prefixes{folder}.Check(), uri)
	}
}

// TestRedirectsWithinPrefixes: bounded stores follow redirects on the same host and to what the prefixes allow, and ask
// no other server.
func TestRedirectsWithinPrefixes(t *testing.T) {
	var asked atomic.Int64
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		honest(w, r)
	})
	target := ""
	uri := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "moved" {
			honest(w, r)
			return
		}
		http.Redirect(w, r, target, http.StatusFound)
	})
	here, err := url.Parse(uri)
	require.NoError(t, err)
	all := &Stores{Web: newWeb(t, nil), Retry: Retry{Attempts: 1}}
	open := func(s *Stores, to string) error {
		target = to
		src, err := s.Open(t.Context(), ParseLocation(uri), Identity{})
		if err == nil {
			err = src.Close()
		}
		return err
	}
	folder := Prefixes{ParseLocation(uri).Folder()}
	require.NoError(t, open(all.Within(folder), "/elsewhere/moved"), "on the same host")
	require.NoError(t, open(all.Within(folder), "http://"+here.Host+"/moved"), "on the same host")
	var refused *UnsupportedError
	require.ErrorAs(t, open(all.Within(folder), other), &refused)
	assert.Contains(t, refused.Error(), "redirects to another host, "+other)
	require.ErrorAs(t, open(all.Within(append(folder, ParseLocation(other).Folder()+"x")), other), &refused)
	require.ErrorAs(t, open(all.Within(nil), "/moved"), &refused)
	assert.Contains(t, refused.Error(), "may not read it")
	assert.Zero(t, asked.Load())
	require.NoError(t, open(all.Within(append(folder, ParseLocation(other).Folder())), other))
	require.NoError(t, open(all, other), "stores that are not bounded follow any")
	assert.EqualValues(t, 2, asked.Load())
	_, err = all.Within(folder).Open(t.Context(), ParseLocation(t.TempDir()), Identity{})
	require.ErrorAs(t, err, &refused, "a path of this machine")
}

func TestSameHost(t *testing.T) {
	for pair, same := range map[[2]string]bool{
		{"http://h/a", "http://H:80/b"}: true, {"http://h/a", "https://h/a"}: true, {"https://h/a", "https://h:443/"}: true,
		{"http://h/a", "http://h:8080/a"}: false, {"http://h:8080/a", "https://h/a"}: false,
		{"http://h/a", "http://i/a"}:       false,
		{"http://h/a", "https://h:8443/a"}: false,
	} {
		from, err := url.Parse(pair[0])
		require.NoError(t, err)
		to, err := url.Parse(pair[1])
		require.NoError(t, err)
		assert.Equal(t, same, sameHost(from, to), pair)
	}
}

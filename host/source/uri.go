package source

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// maxURI bounds a URI. Signed URLs have up to a few thousand bytes.
const maxURI = 8192

// IsURI reports whether a name is a URI of this package, as s3://bucket/key, and not a path of this machine.
func IsURI(name string) bool {
	switch Scheme(name) {
	case "http", "https", "s3":
		return true
	}
	return false
}

// Scheme returns the part before :// in a name, in lower case, or "".
func Scheme(name string) string {
	scheme, _, found := strings.Cut(name, "://")
	if !found {
		return ""
	}
	return strings.ToLower(scheme)
}

// Redact returns a URI without user name, password, query and fragment, which may hold secrets. It returns a path of
// this machine as it is.
func Redact(uri string) string {
	if !IsURI(uri) {
		return uri
	}
	scheme, rest, _ := strings.Cut(uri, "://")
	if Scheme(uri) != "s3" { // a key of S3 may hold any character
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			rest = rest[:i]
		}
	}
	host, key, found := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if found {
		host += "/" + key
	}
	return scheme + "://" + host
}

// BaseName returns the last part of a URI's path: the name of the partition.
func BaseName(uri string) (string, error) {
	if len(uri) > maxURI {
		return "", fmt.Errorf("%.80s...: a URI of %d bytes: the limit is %d", Redact(uri), len(uri), maxURI)
	}
	_, rest, _ := strings.Cut(Redact(uri), "://")
	_, key, found := strings.Cut(rest, "/")
	base := path.Base(key)
	if Scheme(uri) != "s3" {
		var err error
		if base, err = url.PathUnescape(base); err != nil {
			return "", fmt.Errorf("%s: %w", Redact(uri), err)
		}
	}
	if !found || base == "." || base == "/" || base == ".." || strings.HasSuffix(key, "/") ||
		strings.ContainsAny(base, "/\x00") {
		return "", fmt.Errorf("%s names no file: a partition is named by the last part of its URI", Redact(uri))
	}
	return base, nil
}

// IsPattern reports whether a URI stands for the objects that a listing finds: a folder, which ends in a slash or is a
// bucket, or a name with *, ? or [. In a URL of HTTP ? begins the query.
func IsPattern(uri string) bool {
	_, rest, _ := strings.Cut(Redact(uri), "://")
	wildcards := "*?["
	if Scheme(uri) != "s3" {
		wildcards = "*["
	}
	return strings.HasSuffix(rest, "/") || !strings.Contains(rest, "/") || strings.ContainsAny(rest, wildcards)
}

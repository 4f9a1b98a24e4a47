package source

import (
	"fmt"
	"net/url"
	"path"
	"strings"
)

// maxURI bounds a URI. Signed URLs have up to a few thousand bytes.
const maxURI = 8192

// Location is where a partition lies, or a folder or a pattern of partitions: a URI of this package, as
// s3://bucket/key, or a path of this machine. ParseLocation reads it once, where a name comes in; what follows takes a
// Location. The zero value is the empty path. Locations of equal names are equal.
type Location struct {
	name   string // as it was given
	scheme string // in lower case: http, https or s3 of a URI, another or none of a path
	shown  string // the name without what may be secret
}

// ParseLocation reads the name of a file, a folder or a pattern. Every name is one: whether something lies there is
// found when it is opened.
func ParseLocation(name string) Location {
	scheme, rest, found := strings.Cut(name, "://")
	if !found {
		return Location{name: name, shown: name}
	}
	l := Location{name: name, scheme: strings.ToLower(scheme), shown: name}
	if !l.InStore() {
		return l
	}
	if l.scheme != "s3" { // a key of S3 may hold any character
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			rest = rest[:i]
		}
	}
	host, key, found := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if found {
		host += "/" + key
	}
	l.shown = scheme + "://" + host
	return l
}

// ParseLocations reads several names.
func ParseLocations(names ...string) []Location {
	locations := make([]Location, len(names))
	for i, name := range names {
		locations[i] = ParseLocation(name)
	}
	return locations
}

// InStore reports whether the location is a URI of this package, and not a path of this machine.
func (l Location) InStore() bool {
	return l.scheme == "http" || l.scheme == "https" || l.scheme == "s3"
}

// Scheme returns the part of the name before ://, in lower case, or "".
func (l Location) Scheme() string { return l.scheme }

// Name returns the location as it was given: what is opened. The name of a URI may hold a password or a signature.
func (l Location) Name() string { return l.name }

// String returns a URI without user name, password, query and fragment, which may hold secrets, or a path as it is.
// Messages name locations by it.
func (l Location) String() string { return l.shown }

// HostAndKey returns the host with its port, or the bucket, of a URI, and what follows the slash behind it, both
// without what may be secret. The key of a URL is as it was given, escaped. Both are empty for a path.
func (l Location) HostAndKey() (host, key string) {
	if !l.InStore() {
		return "", ""
	}
	host, key, _ = strings.Cut(l.rest(), "/")
	return host, key
}

// rest returns what follows :// in the shown name.
func (l Location) rest() string { return l.shown[len(l.scheme)+len("://"):] }

// BaseName returns the last part of a URI's path: the name of the partition.
func (l Location) BaseName() (string, error) {
	if len(l.name) > maxURI {
		return "", fmt.Errorf("%.80s...: a URI of %d bytes: the limit is %d", l, len(l.name), maxURI)
	}
	_, key := l.HostAndKey()
	base := path.Base(key)
	if l.scheme != "s3" {
		var err error
		if base, err = url.PathUnescape(base); err != nil {
			return "", fmt.Errorf("%s: %w", l, err)
		}
	}
	if key == "" || base == "." || base == "/" || base == ".." || strings.HasSuffix(key, "/") ||
		strings.ContainsAny(base, "/\x00") {
		return "", fmt.Errorf("%s names no file: a partition is named by the last part of its URI", l)
	}
	return base, nil
}

// wildcards returns the characters that make a URI a pattern. In a URL of HTTP ? begins the query.
func (l Location) wildcards() string {
	if l.scheme == "s3" {
		return "*?["
	}
	return "*["
}

// IsBucket reports whether a URI names a host or a bucket alone, without a slash behind it.
func (l Location) IsBucket() bool { return l.InStore() && !strings.Contains(l.rest(), "/") }

// IsPattern reports whether a URI stands for the objects that a listing finds: a folder, which ends in a slash or is a
// bucket, or a name with *, ? or [.
func (l Location) IsPattern() bool {
	return l.IsBucket() || l.InStore() && (strings.HasSuffix(l.shown, "/") || strings.ContainsAny(l.rest(), l.wildcards()))
}

// Folder returns the prefix of the objects that a URI or a pattern names: up to the last slash before its first
// wildcard.
func (l Location) Folder() string {
	host, key := l.HostAndKey()
	if i := strings.IndexAny(key, l.wildcards()); i >= 0 {
		key = key[:i]
	}
	return l.shown[:len(l.scheme)] + "://" + host + "/" + key[:strings.LastIndexByte(key, '/')+1]
}

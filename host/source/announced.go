package source

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/linklocal"
)

// maxAnnounced bounds a URI that one process announces to others.
const maxAnnounced = 4 << 10

// CheckAnnounced returns an error unless a location may be announced to other processes, which open it with rights and
// credentials of their own: it names one object of a store, and holds nothing that may be a secret. The announcer, the
// leader and the reader of a location call it. The error is an *UnsupportedError.
func (l Location) CheckAnnounced() error {
	why := ""
	host, _ := l.HostAndKey()
	switch {
	case !l.InStore():
		why = "it is not the URL of a store"
	case len(l.name) > maxAnnounced:
		why = fmt.Sprintf("it has %d bytes, at most %d", len(l.name), maxAnnounced)
	case l.shown != l.name:
		why = "it has a user name, a password, a query or a fragment"
	case strings.ContainsFunc(l.name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		why = "it has a control character"
	case host == "" || strings.Contains(host, "*"):
		why = "it does not name one host or bucket"
	case l.hasDotSegment():
		why = "its path has a segment . or .."
	default:
		if _, err := l.BaseName(); err != nil {
			why = "it names no object"
		} else if l.scheme != "s3" {
			why = wrongHost(l.name)
		}
	}
	if why == "" {
		return nil
	}
	return &UnsupportedError{Name: fmt.Sprintf("%.200q", l), Lacks: why + ", and every worker is told it",
		Advice: "name an http:, https: or s3: URL of one object, without credentials and query"}
}

// wrongHost says why a URL of HTTP cannot be called; empty: it can.
func wrongHost(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Hostname() == "" {
		return "it does not name one host or bucket"
	}
	if linklocal.ContainsHost(u.Hostname()) {
		return "its host is a link-local address"
	}
	return ""
}

// hasDotSegment reports whether the path of a URI has a segment that a server may take for a folder above, so that the
// URI's beginning would not say where it leads.
func (l Location) hasDotSegment() bool {
	_, path := l.HostAndKey()
	if l.scheme != "s3" {
		unescaped, err := url.PathUnescape(path)
		if err != nil {
			return true
		}
		path = unescaped
	}
	segments := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return slices.ContainsFunc(segments, func(s string) bool {
		s, _, _ = strings.Cut(s, ";") // some servers take what follows for a parameter
		return s == "." || s == ".."
	})
}

// Prefixes are beginnings of URIs, each with at least the host or the bucket and the slash behind it.
type Prefixes []string

// Check returns an error unless every prefix is one.
func (p Prefixes) Check() error {
	for _, prefix := range p {
		l := ParseLocation(prefix)
		host, _ := l.HostAndKey()
		if host == "" || l.IsBucket() || l.shown != prefix || strings.Contains(prefix, "*") || l.hasDotSegment() {
			return fmt.Errorf("%.200q: want the beginning of http:, https: or s3: URLs, up to a slash or farther, as "+
				"s3://rows/2026/: without wildcards, credentials and query", l)
		}
	}
	return nil
}

// Allow reports whether a location begins with one of the prefixes, and does not lead elsewhere from there.
func (p Prefixes) Allow(l Location) bool {
	return l.InStore() && !l.hasDotSegment() && slices.ContainsFunc(p, func(prefix string) bool {
		return strings.HasPrefix(l.canonical(), ParseLocation(prefix).canonical())
	})
}

// canonical writes scheme and host as they are compared.
func (l Location) canonical() string {
	host, key := l.HostAndKey()
	if l.scheme != "s3" {
		host = strings.TrimSuffix(strings.ToLower(host), map[string]string{"http": ":80", "https": ":443"}[l.scheme])
	}
	if !l.IsBucket() {
		host += "/"
	}
	return l.scheme + "://" + host + key
}

package source

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// maxAnnounced bounds a URI that one process announces to others.
const maxAnnounced = 4 << 10

// CheckAnnounced returns an error unless a URI may be announced to other processes, which open it with rights and
// credentials of their own: it names one object of a store, and holds nothing that may be a secret. The announcer, the
// leader and the reader of a URI call it. The error is an *UnsupportedError.
func CheckAnnounced(uri string) error {
	why := ""
	switch {
	case !IsURI(uri):
		why = "it is not the URL of a store"
	case len(uri) > maxAnnounced:
		why = fmt.Sprintf("it has %d bytes, at most %d", len(uri), maxAnnounced)
	case Redact(uri) != uri:
		why = "it has a user name, a password, a query or a fragment"
	case strings.ContainsFunc(uri, func(r rune) bool { return r < ' ' || r == 0x7f }):
		why = "it has a control character"
	case hostOf(uri) == "" || strings.Contains(hostOf(uri), "*"):
		why = "it does not name one host or bucket"
	case hasDotSegment(uri):
		why = "its path has a segment . or .."
	default:
		if _, err := BaseName(uri); err != nil {
			why = "it names no object"
		} else if Scheme(uri) != "s3" {
			why = wrongHost(uri)
		}
	}
	if why == "" {
		return nil
	}
	name := uri
	if IsURI(uri) {
		name = Redact(uri)
	}
	return &UnsupportedError{Name: fmt.Sprintf("%.200q", name), Lacks: why + ", and every worker is told it",
		Advice: "name an http:, https: or s3: URL of one object, without credentials and query"}
}

// hostOf returns the host and the port, or the bucket, of a URI without credentials.
func hostOf(uri string) string {
	_, rest, _ := strings.Cut(uri, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// wrongHost says why a URL of HTTP cannot be called; empty: it can.
func wrongHost(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Hostname() == "" {
		return "it does not name one host or bucket"
	}
	if at, err := netip.ParseAddr(u.Hostname()); err == nil && isLinkLocal(at) {
		return "its host is a link-local address"
	}
	return ""
}

// hasDotSegment reports whether the path of a URI has a segment that a server may take for a folder above, so that the
// URI's beginning would not say where it leads.
func hasDotSegment(uri string) bool {
	_, rest, _ := strings.Cut(uri, "://")
	_, path, _ := strings.Cut(rest, "/")
	if Scheme(uri) != "s3" {
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
		_, rest, _ := strings.Cut(prefix, "://")
		host, _, whole := strings.Cut(rest, "/")
		if !IsURI(prefix) || !whole || host == "" || Redact(prefix) != prefix || strings.Contains(prefix, "*") ||
			hasDotSegment(prefix) {
			return fmt.Errorf("%.200q: want the beginning of http:, https: or s3: URLs, up to a slash or farther, as "+
				"s3://rows/2026/: without wildcards, credentials and query", Redact(prefix))
		}
	}
	return nil
}

// Allow reports whether a URI begins with one of the prefixes, and does not lead elsewhere from there.
func (p Prefixes) Allow(uri string) bool {
	uri = canonical(Redact(uri))
	return IsURI(uri) && !hasDotSegment(uri) && slices.ContainsFunc(p, func(prefix string) bool {
		return strings.HasPrefix(uri, canonical(prefix))
	})
}

// canonical writes scheme and host as they are compared.
func canonical(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	scheme = strings.ToLower(scheme)
	host, path, found := strings.Cut(rest, "/")
	if scheme != "s3" {
		host = strings.TrimSuffix(strings.ToLower(host), map[string]string{"http": ":80", "https": ":443"}[scheme])
	}
	if found {
		host += "/"
	}
	return scheme + "://" + host + path
}

// FolderOf returns the prefix of the objects that a URI or a pattern names: up to the last slash before its first
// wildcard.
func FolderOf(uri string) string {
	scheme, rest, _ := strings.Cut(Redact(uri), "://")
	wildcards := "*?["
	if Scheme(uri) != "s3" {
		wildcards = "*["
	}
	host, key, _ := strings.Cut(rest, "/")
	if i := strings.IndexAny(key, wildcards); i >= 0 {
		key = key[:i]
	}
	return scheme + "://" + host + "/" + key[:strings.LastIndexByte(key, '/')+1]
}

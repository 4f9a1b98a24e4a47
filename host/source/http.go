package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxRedirects    = 5
	maxHeaderBytes  = 64 << 10
	dialTimeout     = 10 * time.Second
	headerTimeout   = 20 * time.Second
	idleConnections = 64
)

// NewTransport returns the transport for requests for partitions: HTTP/1.1, with bounds on headers and on the time
// until an answer begins. Servers are verified against roots; nil means the system's roots. No link-local address is
// called, whatever name leads there.
func NewTransport(roots *x509.CertPool) *http.Transport { return newTransport(roots, nil) }

// newTransport is NewTransport with a resolver of names; nil means the system's.
func newTransport(roots *x509.CertPool, resolver *net.Resolver) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: refuseLinkLocal, Resolver: resolver}
	return &http.Transport{
		Proxy:                  proxyOf,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true,
		// One connection for each request: a reset then ends one read, and not all reads.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
}

// Web opens objects behind http: and https: by range requests.
type Web struct{ client *http.Client }

// NewWeb returns an opener whose requests go through a transport. It follows at most five redirects, and none from
// https to http.
func NewWeb(transport http.RoundTripper) *Web {
	return &Web{client: &http.Client{Transport: transport, CheckRedirect: checkRedirect}}
}

// within returns an opener that follows a redirect only on the same host, or to a URL that begins with one of the
// prefixes.
func (w *Web) within(prefixes Prefixes) *Web {
	client := *w.client
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		to := ParseLocation(req.URL.String())
		if !sameHost(via[0].URL, req.URL) && !prefixes.Allow(to) {
			return &UnsupportedError{
				Name: ParseLocation(via[0].URL.String()).String(), Lacks: "it redirects to another host, " + to.String(),
				Advice: notAllowed,
			}
		}
		return checkRedirect(req, via)
	}
	return &Web{client: &client}
}

// sameHost reports whether two URLs lead to the same server, the second one perhaps with TLS.
func sameHost(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	port := func(u *url.URL) string {
		if p := u.Port(); p != "" {
			return p
		}
		return map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return port(from) == port(to) || from.Scheme == "http" && port(from) == "80" && port(to) == "443"
}

// checkRedirect lets a request follow a redirect, or returns why it must not. The next host does not learn the URL that
// led to it, which may be signed.
func checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	from := ParseLocation(via[0].URL.String()).String()
	if len(via) > maxRedirects {
		return &AnswerError{Name: from, Problem: fmt.Sprintf("more than %d redirects", maxRedirects)}
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return &AnswerError{
			Name: from, Problem: "it redirects to " + req.URL.Scheme + ", which is not encrypted",
		}
	}
	return nil
}

// List implements Opener. HTTP has no listing, so a name stands for itself, and a pattern is refused.
func (w *Web) List(ctx context.Context, pattern Location) ([]Object, error) {
	if pattern.IsPattern() {
		return nil, &UnsupportedError{
			Name: pattern.String(), Lacks: "HTTP has no listing, so that patterns and folders match nothing",
			Advice: "name each file",
		}
	}
	src, err := w.Open(ctx, pattern, Identity{})
	if err != nil {
		return nil, err
	}
	return []Object{{Location: pattern, Size: src.Size()}}, src.Close()
}

// Open implements Opener. It asks for the first byte: the answer shows the size, the ETag, and whether the server
// supports ranges.
func (w *Web) Open(ctx context.Context, at Location, pinned Identity) (Source, error) {
	if _, err := at.BaseName(); err != nil {
		return nil, err
	}
	if _, err := url.Parse(at.name); err != nil {
		return nil, fmt.Errorf("%s is not a URL: write it as https://HOST/PATH", at) // the error of url.Parse repeats secrets
	}
	s := &webObject{web: w, uri: at.name, name: at.shown}
	resp, err := s.requestRange(ctx, 0, 1, "")
	if err != nil {
		return nil, err
	}
	err = s.pinIdentity(ctx, resp)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if !pinned.IsZero() && pinned != s.identity {
		return nil, &ChangedError{Name: s.name, Pinned: pinned, Found: s.identity}
	}
	return s, nil
}

// webObject is an object behind HTTP. Its identity is its ETag.
type webObject struct {
	web      *Web
	uri      string
	name     string
	identity Identity
}

// Name implements Source.
func (s *webObject) Name() string { return s.name }

// Size implements Source.
func (s *webObject) Size() int64 { return s.identity.Size }

// Identity implements Source.
func (s *webObject) Identity() Identity { return s.identity }

// Close implements Source. Connections belong to the opener's transport.
func (s *webObject) Close() error { return nil }

// requestRange asks for n bytes from byte off. If etag is not empty, the server answers with bytes only if the object
// still has that ETag. The caller closes the body.
func (s *webObject) requestRange(ctx context.Context, off, n int64, etag string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.uri, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%s is not a URL: write it as https://HOST/PATH", s.name)
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, off+n-1))
	req.Header.Set("Accept-Encoding", "identity")
	if etag != "" {
		req.Header.Set("If-Match", etag)
	}
	resp, err := s.web.client.Do(req)
	if err == nil {
		return resp, nil
	}
	var wrapped *url.Error // repeats the URI, secrets included
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var answer *AnswerError
	var unsupported *UnsupportedError
	var unknown x509.UnknownAuthorityError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &answer):
		return nil, err
	case errors.As(err, &unsupported):
		return nil, unsupported
	case errors.As(err, &unknown):
		return nil, fmt.Errorf("%s: %w: name the authority's certificate with --source-ca", s.name, err)
	}
	return nil, &UnreachableError{Name: s.name, Err: err}
}

// pinIdentity takes size and ETag from the answer to the request for the first byte.
func (s *webObject) pinIdentity(ctx context.Context, resp *http.Response) error {
	empty := false
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable: // an empty object has no first byte
		r, ok := parseContentRange(resp.Header.Get("Content-Range"))
		if !ok || r.total != 0 {
			return &AnswerError{Name: s.name, Problem: "it has no first byte and is not empty"}
		}
		empty = true
	case http.StatusOK:
		return &UnsupportedError{
			Name: s.name, Lacks: "the server does not answer requests for ranges",
			Advice: "serve the file with a server that does, or copy it to this machine",
		}
	default:
		return s.statusError(resp)
	}
	etag := resp.Header.Get("ETag")
	switch {
	case etag == "" && !empty, strings.HasPrefix(etag, "W/"):
		lacks := "the server sends no ETag"
		if etag != "" {
			lacks = fmt.Sprintf("its ETag %.80q is weak", etag)
		}
		return &UnsupportedError{
			Name: s.name, Lacks: lacks + ", so that a change while it is read would not be noticed",
			Advice: "serve the file with a strong ETag (and without compression), or copy it to this machine",
		}
	case etag == "":
		etag = `""`
	case len(etag) < 2 || len(etag) > 1024 || etag[0] != '"' || etag[len(etag)-1] != '"':
		return &AnswerError{Name: s.name, Problem: fmt.Sprintf("the ETag %.80q", etag)}
	}
	s.identity = Identity{Kind: ByETag, Value: etag}
	if empty {
		return nil
	}
	r, ok := parseContentRange(resp.Header.Get("Content-Range"))
	if !ok || r.total < 0 {
		return &AnswerError{
			Name:    s.name,
			Problem: fmt.Sprintf("the Content-Range %.80q does not say the size", resp.Header.Get("Content-Range")),
		}
	}
	s.identity.Size = r.total
	if err := CheckPart(s.name, resp.Header, 0, 1, r.total); err != nil {
		return err
	}
	_, err := ReadPart(ctx, s.name, resp.Body, make([]byte, 1), 0)
	return err
}

// statusError returns the error of an answer that has no bytes of the object.
func (s *webObject) statusError(resp *http.Response) error {
	after := ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	err := StatusError(s.name, resp.StatusCode, after, nil)
	if forbidden := (*ForbiddenError)(nil); errors.As(err, &forbidden) {
		forbidden.Signed = strings.Contains(s.uri, "?")
	}
	if err != nil {
		return err
	}
	return &AnswerError{Name: s.name, Problem: fmt.Sprintf("status %d", resp.StatusCode)}
}

// ReadAt implements Source.
func (s *webObject) ReadAt(ctx context.Context, b []byte, off int64) (n int, err error) {
	want, end := Clip(b, off, s.Size())
	if len(want) == 0 {
		return 0, end
	}
	resp, err := s.requestRange(ctx, off, int64(len(want)), s.identity.Value)
	if err != nil {
		return 0, err
	}
	defer func() {
		if closed := resp.Body.Close(); closed != nil && err == nil {
			n, err = 0, &UnreachableError{Name: s.name, Err: closed}
		}
	}()
	etag := resp.Header.Get("ETag")
	switch resp.StatusCode {
	case http.StatusPartialContent:
		if etag != s.identity.Value {
			return 0, s.changedError(etag, resp.Header)
		}
	case http.StatusOK:
		if etag != "" && etag != s.identity.Value {
			return 0, s.changedError(etag, resp.Header)
		}
		return 0, &AnswerError{Name: s.name, Problem: fmt.Sprintf("bytes %d+%d were asked for, all came", off, len(want))}
	case http.StatusPreconditionFailed:
		return 0, s.changedError(etag, resp.Header)
	case http.StatusRequestedRangeNotSatisfiable:
		if r, ok := parseContentRange(resp.Header.Get("Content-Range")); ok && r.total != s.Size() {
			return 0, s.changedError(etag, resp.Header)
		}
		return 0, &AnswerError{Name: s.name, Problem: fmt.Sprintf("it has no bytes %d+%d", off, len(want))}
	default:
		return 0, s.statusError(resp)
	}
	if err := CheckPart(s.name, resp.Header, off, int64(len(want)), s.Size()); err != nil {
		return 0, err
	}
	if n, err = ReadPart(ctx, s.name, resp.Body, want, off); err != nil {
		return 0, err
	}
	return n, end
}

// changedError is the error of an answer with another ETag. The answer's headers may say which object is there now.
func (s *webObject) changedError(etag string, header http.Header) error {
	found := Identity{}
	if r, ok := parseContentRange(header.Get("Content-Range")); ok && r.total >= 0 && etag != "" && len(etag) <= 1024 {
		found = Identity{Kind: ByETag, Value: etag, Size: r.total}
	}
	return &ChangedError{Name: s.name, Pinned: s.identity, Found: found}
}

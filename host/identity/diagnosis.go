package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// Cause is why a caller and a server cannot work together, however often the caller tries.
type Cause int

// The causes.
const (
	WantsTLS       Cause = iota + 1 // it was addressed with http and serves TLS
	WantsClear                      // it was addressed with https and serves in clear
	NoIdentity                      // it was addressed with https, and the caller has no certificate
	UnknownServer                   // another authority signed its certificate
	UnknownCaller                   // it does not know the authority of the caller's certificate
	WrongHost                       // its certificate is for other names
	ServerExpired                   // its certificate is not valid now
	CallerExpired                   // the caller's certificate is not valid now
	RefusedCaller                   // it wants another certificate from the caller
	WrongRole                       // it is not a member of the control plane
	NotHTTP                         // something else listens there
	UnknownAddress                  // the host's name cannot be resolved
)

// MismatchError says that an address or an identity is wrong: asking again will not help.
type MismatchError struct {
	Cause Cause
	URL   string // as it was called
	Err   error  // the error that was observed; may be nil
}

// Unwrap returns the error that was observed.
func (e *MismatchError) Unwrap() error { return e.Err }

// Error says what is wrong. The remedy depends on where addresses and files are named, so Error leaves it out.
func (e *MismatchError) Error() string {
	says := map[Cause]string{
		WantsTLS:       "it serves TLS, and was addressed with http",
		WantsClear:     "it serves in clear, and was addressed with https",
		NoIdentity:     "it is addressed with https, and no certificate was given to show there",
		UnknownServer:  "its certificate is signed by another authority than the one that was given",
		UnknownCaller:  "it does not know the authority that signed the certificate that was shown",
		WrongHost:      "its certificate is for other names than this",
		ServerExpired:  "its certificate is not valid now",
		CallerExpired:  "it says that the certificate that was shown has expired",
		RefusedCaller:  "it refuses the certificate that was shown",
		WrongRole:      "its certificate is not that of a member of the control plane",
		NotHTTP:        "what listens there does not speak HTTP",
		UnknownAddress: "nobody knows the name of this host",
	}[e.Cause]
	if e.Err != nil {
		return fmt.Sprintf("%s: %s (%v)", e.URL, says, e.Err)
	}
	return e.URL + ": " + says
}

// diagnoseTime bounds Diagnose.
const diagnoseTime = 2 * time.Second

// Diagnose looks for the reason that a member of the control plane cannot be called: it connects once, asks for
// /readyz, and examines the answer. base is a URL of BaseURL. It returns a *MismatchError if the address or the
// identity is wrong, and nil otherwise: the server may be away for a moment, or answer by now.
func Diagnose(ctx context.Context, base string, o Options) error {
	u, err := url.Parse(base)
	if err != nil || strings.HasSuffix(u.Hostname(), unixHost) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	secure, host := u.Scheme == "https", u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[bool]string{true: "443", false: "80"}[secure])
	}
	mismatch := func(c Cause, err error) error { return &MismatchError{Cause: c, URL: base, Err: err} }
	conf, err := o.ClientOf(AcceptControl)
	if err != nil {
		return err
	}
	if secure && conf == nil {
		return mismatch(NoIdentity, nil)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) && unknown.IsNotFound {
		return mismatch(UnknownAddress, nil)
	}
	if err != nil {
		return nil
	}
	defer conn.Close()
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end) // fails only on a closed connection
	}
	if secure {
		conf = conf.Clone()
		conf.ServerName = u.Hostname()
		conn = tls.Client(conn, conf)
	}
	if secure {
		err = conn.(*tls.Conn).HandshakeContext(ctx)
	}
	n, answer := 0, make([]byte, 512)
	if err == nil {
		// A server that refuses may have closed the connection by now. Bytes that it sent before can still be read, even if
		// the request failed.
		_, werr := fmt.Fprintf(conn, "GET /readyz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", u.Host)
		for err == nil && n < len(answer) {
			var k int
			k, err = conn.Read(answer[n:])
			n += k
		}
		if n == 0 && causeOf(err) == 0 && werr != nil {
			err = werr
		}
	}
	if n > 0 {
		return diagnoseAnswer(answer[:n], secure, mismatch)
	}
	if cause := causeOf(err); cause != 0 {
		return mismatch(cause, err)
	}
	return nil
}

// diagnoseAnswer examines a server's answer.
func diagnoseAnswer(b []byte, secure bool, mismatch func(Cause, error) error) error {
	switch {
	case !secure && bytes.Contains(b, []byte("HTTP request to an HTTPS server")), // as Go says it
		!secure && bytes.Contains(b, []byte("plain HTTP request was sent to HTTPS port")), // as nginx does
		!secure && b[0] == 21 && len(b) > 1 && b[1] == 3:                                  // an alert of TLS
		return mismatch(WantsTLS, nil)
	case !bytes.HasPrefix(b, []byte("HTTP/1.")):
		return mismatch(NotHTTP, fmt.Errorf("it says %.40q", b))
	}
	return nil
}

// causeOf returns the cause of an error of a TLS connection, or 0 for an error that may pass.
func causeOf(err error) Cause {
	var (
		record    tls.RecordHeaderError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &record):
		if bytes.HasPrefix(record.RecordHeader[:], []byte("HTTP")) {
			return WantsClear
		}
		return NotHTTP
	case errors.As(err, &authority):
		return UnknownServer
	case errors.As(err, &name):
		return WrongHost
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ServerExpired
	case errors.As(err, &invalid):
		return UnknownServer
	case errors.Is(err, ErrPeer):
		return WrongRole
	}
	said, remote := strings.CutPrefix(alertText(err), "tls: ")
	switch { // the alert that the other side sends; crypto/tls has no types for it
	case !remote:
		return 0
	case said == "certificate required":
		return NoIdentity
	case said == "unknown certificate authority":
		return UnknownCaller
	case said == "expired certificate":
		return CallerExpired
	case strings.Contains(said, "certificate"):
		return RefusedCaller
	}
	return 0
}

// alertText returns the alert that the other side of a TLS connection sent before it closed the connection.
func alertText(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

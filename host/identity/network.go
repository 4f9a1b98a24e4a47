package identity

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/linklocal"
)

// Listen listens on "HOST:PORT" or "unix:PATH". Without TLS (secure false) it accepts only loopback addresses, unix
// sockets and addresses inside trusted, a CIDR that the operator names; otherwise the error wraps ErrInsecure. It
// replaces the socket of a server that has died, and refuses one that answers.
func Listen(ctx context.Context, addr string, secure bool, trusted string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: want HOST:PORT or unix:PATH: %w", addr, err)
	}
	if !secure {
		if err := allowInClear(host, trusted); err != nil {
			return nil, fmt.Errorf("listen on %s: %w", addr, err)
		}
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", addr)
}

// allowInClear returns nil when a host may be served without TLS.
func allowInClear(host, trusted string) error {
	if host == "localhost" {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	if err == nil && ip.IsLoopback() {
		return nil
	}
	if trusted != "" {
		network, perr := netip.ParsePrefix(trusted)
		switch {
		case perr != nil:
			return fmt.Errorf("trusted network: %w", perr)
		case err != nil:
			return fmt.Errorf("%w: %q is not an address, so it cannot be inside %s: name the address", ErrInsecure,
				host, network)
		case network.Contains(ip):
			return nil
		}
		return fmt.Errorf("%w: %s is not inside %s", ErrInsecure, ip, network)
	}
	return fmt.Errorf("%w: only loopback and unix sockets go without TLS: give cert, key and ca (millrace pki), or "+
		"name the network that is trusted", ErrInsecure)
}

// socketMode lets only the owner of a unix socket and its group connect, because a unix socket asks for no certificate.
const socketMode = 0o660

// listenUnix listens on a socket in the file system. The mode of the socket is socketMode for every umask.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	l, err := bindUnix(ctx, path)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	info, serr := os.Lstat(path)
	if serr != nil {
		return nil, fmt.Errorf("listen on unix:%s: %w", path, serr)
	}
	if info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("listen on unix:%s: there is a file that is not a socket: name another path, or remove it",
			path)
	}
	c, derr := net.DialTimeout("unix", path, time.Second)
	if derr == nil {
		return nil, errors.Join(fmt.Errorf("listen on unix:%s: somebody serves there already", path), c.Close())
	}
	if !errors.Is(derr, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("listen on unix:%s: %w", path, derr)
	}
	if rerr := os.Remove(path); rerr != nil {
		return nil, rerr
	}
	return bindUnix(ctx, path)
}

// bindUnix makes the socket. Linux gives a socket's file the mode of its descriptor less the umask, so that the file
// is never more open than socketMode. Permissions that the umask took away are added again before any connection is
// accepted.
func bindUnix(ctx context.Context, path string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), socketMode) })
		return errors.Join(err, failed)
	}}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on unix:%s: %w", path, err), l.Close())
	}
	return l, nil
}

// unixHost ends the host of a URL that stands for a unix socket; the path, in hexadecimal, is before it.
const unixHost = ".unix"

// BaseURL turns the address of a server (http://, https:// or unix:PATH) into a URL that [HTTPClient] understands,
// without a slash at its end. Addresses come from peers: a host that stands for a unix socket, one that is a link-local
// address, and a user name are refused.
func BaseURL(raw string) (string, error) {
	if path, ok := strings.CutPrefix(raw, "unix:"); ok {
		if path == "" {
			return "", fmt.Errorf("url %q: want unix:PATH", raw)
		}
		return "http://" + hex.EncodeToString([]byte(path)) + unixHost, nil
	}
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.HasSuffix(u.Hostname(), unixHost) {
		return "", fmt.Errorf("url %.200q: want http://HOST:PORT, https://HOST:PORT or unix:PATH", raw)
	}
	if linklocal.ContainsHost(u.Hostname()) {
		return "", linkLocalError(u.Host)
	}
	return u.Scheme + "://" + u.Host, nil
}

func linkLocalError(address string) error {
	return fmt.Errorf("%s is a link-local address, or one at which a cloud keeps a machine's credentials: serve at "+
		"another address", address)
}

// OfThisMachine reports whether an address of BaseURL leads to the machine of the process that calls it: a unix socket,
// or a loopback address.
func OfThisMachine(raw string) bool {
	if strings.HasPrefix(raw, "unix:") {
		return true
	}
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(u.Hostname())
	return err == nil && (at.Unmap().IsLoopback() || at.IsUnspecified()) || u.Hostname() == "localhost"
}

// refuseLinkLocal is a net.Dialer's Control: address is what a name was resolved to.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	if linklocal.ContainsPort(address) {
		return linkLocalError(address)
	}
	return nil
}

// HTTPClient returns a client for the service's URLs: HTTPClientOf with AcceptService. A caller that knows which of the
// two it calls says so to HTTPClientOf.
func HTTPClient(o Options) (*http.Client, error) { return HTTPClientOf(o, AcceptService) }

// HTTPClientOf returns a client for URLs of [BaseURL]: HTTP/1.1 with connections kept alive, and with the identity's
// certificate towards https, where it calls only servers that accept takes. The requests set their own deadlines. The
// client follows no redirect, uses no proxy, and calls no link-local address.
func HTTPClientOf(o Options, accept Acceptance) (*http.Client, error) {
	conf, err := o.ClientOf(accept)
	if err != nil {
		return nil, err
	}
	sockets := &net.Dialer{Timeout: 5 * time.Second}
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second, Control: refuseLinkLocal}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			if name, ok := strings.CutSuffix(host, unixHost); ok {
				if path, err := hex.DecodeString(name); err == nil {
					return sockets.DialContext(ctx, "unix", string(path))
				}
			}
			return dialer.DialContext(ctx, network, addr)
		},
		TLSClientConfig:     conf,
		TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
		// The buffer is small because the part of a mini-batch that comes with the answer's header is copied once more.
		ReadBufferSize:        4 << 10,
		WriteBufferSize:       64 << 10,
		ExpectContinueTimeout: time.Second,
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/admission"
)

// listeners are the addresses at which a node serves.
type listeners struct {
	list    []net.Listener
	reached []string // URLs of the addresses as they are listened at
	urls    []string // URLs for the control plane: those advertised, else reached
}

// openListeners listens at the configured addresses. tlsConfig is nil where the node has no certificate.
func openListeners(ctx context.Context, c *Config, tlsConfig *tls.Config, log *slog.Logger) (*listeners, error) {
	l := &listeners{}
	for _, address := range c.Listen {
		if err := l.listen(ctx, address, tlsConfig != nil, c.InsecureNetwork); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	l.urls = l.reached
	if len(c.Advertise) > 0 {
		l.urls = withPort(c.Advertise, l.list)
	}
	files, err := admission.RaiseFiles()
	if err != nil {
		log.Warn("the process has fewer file descriptors than it might", "error", err)
	}
	// Connections leave file descriptors to drives and files.
	limit := admission.NewLimit(admission.Connections(c.Limits.Connections, files), log)
	for i, listener := range l.list {
		_, unix := listener.Addr().(*net.UnixAddr)
		listener = limit.Listen(listener)
		if tlsConfig != nil && !unix {
			listener = tls.NewListener(listener, tlsConfig)
		}
		l.list[i] = listener
	}
	return l, nil
}

// withPort returns URLs in which port 0 is replaced by the port of the first listener that has one.
func withPort(urls []string, list []net.Listener) []string {
	port := ""
	for _, listener := range list {
		if address, ok := listener.Addr().(*net.TCPAddr); ok {
			port = strconv.Itoa(address.Port)
			break
		}
	}
	complete := make([]string, len(urls))
	for i, raw := range urls {
		complete[i] = raw
		if u, err := url.Parse(raw); err == nil && u.Port() == "0" && port != "" {
			u.Host = net.JoinHostPort(u.Hostname(), port)
			complete[i] = u.String()
		}
	}
	return complete
}

// listen opens one address, HOST:PORT or unix:PATH.
func (l *listeners) listen(ctx context.Context, address string, secure bool, insecureNetwork string) error {
	listener, err := identity.Listen(ctx, address, secure, insecureNetwork)
	if err != nil {
		return err
	}
	l.list = append(l.list, listener)
	path, unix := strings.CutPrefix(address, "unix:")
	switch {
	case unix:
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		l.reached = append(l.reached, "unix:"+path)
	case secure:
		l.reached = append(l.reached, "https://"+listener.Addr().String())
	default:
		l.reached = append(l.reached, "http://"+listener.Addr().String())
	}
	return nil
}

// close closes the listeners of a node that does not serve yet.
func (l *listeners) close() error {
	var errs []error
	for _, listener := range l.list {
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}

// maxOwnerURLs bounds the URLs that are written into a drive's lock file.
const maxOwnerURLs = 8

// driveOwner returns the description of the node for a process that finds one of the node's drives open. Unix sockets
// come first, because they ask for no certificate.
func driveOwner(node string, urls []string) func(drive string) *csd.Owner {
	return func(drive string) *csd.Owner {
		owner := &csd.Owner{Name: "node " + node, Drive: drive}
		for _, unix := range []bool{true, false} {
			for _, url := range urls {
				if strings.HasPrefix(url, "unix:") == unix && len(owner.URLs) < maxOwnerURLs {
					owner.URLs = append(owner.URLs, url)
				}
			}
		}
		return owner
	}
}

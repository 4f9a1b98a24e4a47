package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
)

// Options name the PEM files of an identity. The zero value means no TLS.
type Options struct {
	Cert string `yaml:"cert" json:"cert"` // certificate chain, leaf first
	Key  string `yaml:"key" json:"key"`   // its private key
	CA   string `yaml:"ca" json:"ca"`     // authorities whose certificates peers must show
}

// On reports whether TLS is wanted.
func (o Options) On() bool { return o != Options{} }

// Server returns the configuration of a listening side that speaks HTTP/1.1 with every identity of the authority:
// ServerOf with all roles.
func (o Options) Server() (*tls.Config, error) {
	return o.ServerOf(func(s tls.ConnectionState) error { return Require(&s, roles...) }, "http/1.1")
}

// ServerOf returns the configuration of a listening side: TLS 1.3, one of the protocols (ALPN), and a client
// certificate of the authority. verify is called with every connection, and its error ends the connection; the caller
// then learns only that its certificate is refused. ServerOf returns nil for the zero value. The error wraps
// ErrCertificate.
func (o Options) ServerOf(verify func(tls.ConnectionState) error, protocols ...string) (*tls.Config, error) {
	f, err := o.open()
	if f == nil || err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			cert, pool, err := f.load()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert,
				NextProtos:   protocols,
				Certificates: []tls.Certificate{*cert}, ClientCAs: pool,
				VerifyConnection: verify,
			}, nil
		},
	}, nil
}

// Client returns the configuration of a calling side that accepts members of the control plane and nodes as servers:
// ClientOf with AcceptService.
func (o Options) Client() (*tls.Config, error) { return o.ClientOf(AcceptService) }

// ClientOf returns the configuration of a calling side. The caller shows its certificate, and accepts only servers
// whose certificate the authority signed for the address that is called and whose identity accept takes. A new
// authority is used from the next start on: put both into the CA file before the change. ClientOf returns nil for the
// zero value. The error wraps ErrCertificate.
func (o Options) ClientOf(accept Acceptance) (*tls.Config, error) {
	f, err := o.open()
	if f == nil || err != nil {
		return nil, err
	}
	_, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    pool,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, _, err := f.load()
			return cert, err
		},
		VerifyConnection: func(s tls.ConnectionState) error {
			id, err := Peer(&s)
			if err != nil {
				return err
			}
			return accept(id)
		},
	}, nil
}

// Own returns the identity in the certificate that this side shows; the zero Identity for the zero value. The error
// wraps ErrCertificate.
func (o Options) Own() (Identity, error) {
	f, err := o.open()
	if f == nil || err != nil {
		return Identity{}, err
	}
	return Of(f.cert.Leaf)
}

// files are an identity's PEM files. They are read again when they have changed.
type files struct {
	o Options

	mu   sync.Mutex     // guards what follows
	seen [3]os.FileInfo // seen is the state of the files when they were read.
	cert *tls.Certificate
	pool *x509.CertPool
}

// sameFile reports whether a file was neither written nor replaced between two looks.
func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return false
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// open reads the files once, so that an error is found at the start. It returns nil for the zero value.
func (o Options) open() (*files, error) {
	if !o.On() {
		return nil, nil
	}
	if o.Cert == "" || o.Key == "" || o.CA == "" {
		return nil, fmt.Errorf("%w: cert, key and ca go together: name all three or none", ErrCertificate)
	}
	f := &files{o: o}
	if _, _, err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// load returns the certificate and the authorities. While a file is being replaced, load returns the last pair that
// it read.
func (f *files) load() (*tls.Certificate, *x509.CertPool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now [3]os.FileInfo
	changed := f.cert == nil
	for i, path := range []string{f.o.Cert, f.o.Key, f.o.CA} {
		now[i], _ = os.Stat(path)
		changed = changed || !sameFile(now[i], f.seen[i])
	}
	if !changed {
		return f.cert, f.pool, nil
	}
	cert, pool, err := f.o.read()
	switch {
	case err == nil:
		f.cert, f.pool, f.seen = cert, pool, now
	case f.cert == nil:
		return nil, nil, err
	}
	return f.cert, f.pool, nil
}

// read reads the files.
func (o Options) read() (*tls.Certificate, *x509.CertPool, error) {
	cert, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("%w %s and key %s: %w", ErrCertificate, o.Cert, o.Key, err)
	}
	if _, err := Of(cert.Leaf); err != nil {
		return nil, nil, fmt.Errorf("%w %s: %w", ErrCertificate, o.Cert, err)
	}
	pem, err := os.ReadFile(o.CA)
	if err != nil {
		return nil, nil, fmt.Errorf("%w authority: %w", ErrCertificate, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("%w authority %s: no PEM certificate in it", ErrCertificate, o.CA)
	}
	return &cert, pool, nil
}

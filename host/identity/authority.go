package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Names of an authority's files in its folder.
const (
	AuthorityCert = "ca.pem"
	AuthorityKey  = "ca.key"
)

// Lifetimes of certificates where the request names none.
const (
	AuthorityLifetime   = 10 * 365 * 24 * time.Hour
	CertificateLifetime = 365 * 24 * time.Hour
)

// InitAuthority makes a certificate authority in dir, which it creates: ca.pem and ca.key (ECDSA P-256, readable by its
// owner only). It does not touch an authority that is there already: the error is os.ErrExist.
func InitAuthority(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("init authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("init authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(AuthorityLifetime),
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := sign(template, template, key, key)
	if err != nil {
		return fmt.Errorf("init authority: %w", err)
	}
	if err := writePair(filepath.Join(dir, AuthorityCert), filepath.Join(dir, AuthorityKey), [][]byte{der},
		key); err != nil {
		return fmt.Errorf("init authority: %w", err)
	}
	return nil
}

// hostName matches a name as DNS has it, and all hosts of a domain (*.example.net). A certificate for a name that does
// not match could be signed, and no caller would accept it.
var hostName = regexp.MustCompile(`^(\*\.)?` + hostLabel + `(\.` + hostLabel + `)*$`)

// hostLabel matches the part of a name between two dots.
const hostLabel = `[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?`

// Request asks for a certificate.
type Request struct {
	Identity
	Hosts    []string      // names and addresses by which the holder is called; servers need them, launchers may have them
	Lifetime time.Duration // 0 means CertificateLifetime
}

// Check refuses what no certificate may say: a holder that is none, hosts that no caller would accept, and a server
// without a host.
func (r *Request) Check() error {
	if err := r.Identity.Check(); err != nil {
		return err
	}
	if (r.Role == Control || r.Role == Node) && len(r.Hosts) == 0 {
		return fmt.Errorf("a %s is called by name or address: say which (--host)", r.Role)
	}
	for _, h := range r.Hosts {
		if net.ParseIP(h) == nil && !hostName.MatchString(h) {
			return fmt.Errorf("host %q is neither a name nor an address: want it as in node0.example.net or 10.0.0.7, "+
				"without port or scheme", h)
		}
	}
	return nil
}

// Issue signs a certificate with the authority in dir and writes it to certPath and keyPath, which must not exist.
func Issue(dir string, r Request, certPath, keyPath string) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	if r.Lifetime <= 0 {
		r.Lifetime = CertificateLifetime
	}
	ca, caKey, err := readAuthority(dir)
	if err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: r.String()},
		URIs:        []*url.URL{r.URI()},
		NotAfter:    time.Now().Add(r.Lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(r.Hosts) > 0 && r.Role != Operator { // a launcher with hosts serves mini-batches to launchers of its owner
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range r.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	if template.NotAfter.After(ca.NotAfter) {
		template.NotAfter = ca.NotAfter
	}
	der, err := sign(template, ca, key, caKey)
	if err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	if err := writePair(certPath, keyPath, [][]byte{der}, key); err != nil {
		return fmt.Errorf("issue certificate: %w", err)
	}
	return nil
}

// sign signs a certificate. It sets the serial number, and the beginning to an hour ago for clocks that lag.
func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber, template.NotBefore = serial, time.Now().Add(-time.Hour)
	return x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
}

// readAuthority reads the authority in a folder.
func readAuthority(dir string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	cert, err := readPEM(filepath.Join(dir, AuthorityCert), "CERTIFICATE")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: make an authority there first (millrace pki init)", err)
	}
	if err != nil {
		return nil, nil, err
	}
	key, err := readPEM(filepath.Join(dir, AuthorityKey), "PRIVATE KEY")
	if err != nil {
		return nil, nil, err
	}
	ca, err := x509.ParseCertificate(cert)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	signer, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %s holds a key of type %T, want ECDSA", ErrCertificate,
			filepath.Join(dir, AuthorityKey), parsed)
	}
	return ca, signer, nil
}

// readPEM reads the first block of a kind from a file.
func readPEM(path, kind string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%w: %s does not begin with a PEM block %s", ErrCertificate, path, kind)
	}
	return block.Bytes, nil
}

// writePair writes a key and a certificate to files that must not exist. It writes the key first: a certificate without
// its key would look issued.
func writePair(certPath, keyPath string, chain [][]byte, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := writeNew(keyPath, 0o600, "PRIVATE KEY", der); err != nil {
		return err
	}
	if err := writeNew(certPath, 0o644, "CERTIFICATE", chain...); err != nil {
		return errors.Join(err, os.Remove(keyPath))
	}
	return nil
}

// writeNew writes PEM blocks to a file that must not exist.
func writeNew(path string, mode os.FileMode, kind string, blocks ...[]byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: use it, move it away, or choose another folder", err)
	}
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if err := pem.Encode(f, &pem.Block{Type: kind, Bytes: b}); err != nil {
			return errors.Join(err, f.Close(), os.Remove(path))
		}
	}
	return f.Close()
}

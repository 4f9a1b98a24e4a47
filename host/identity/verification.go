package identity

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Certificate is a certificate in one of the files of Options, and when it ends.
type Certificate struct {
	File      string
	Authority bool // Authority is that of the CA file.
	Subject   string
	Expires   time.Time
	parsed    *x509.Certificate
}

// Certificates reads the certificates of the files: the chain, leaf first, then the authorities. There are none for the
// zero value. The error wraps ErrCertificate.
func (o Options) Certificates() ([]Certificate, error) {
	if !o.On() {
		return nil, nil
	}
	var all []Certificate
	for _, file := range []string{o.Cert, o.CA} {
		list, err := readCertificates(file, file == o.CA)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// readCertificates reads the certificates of one file.
func readCertificates(file string, authority bool) ([]Certificate, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	var list []Certificate
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrCertificate, file, err)
		}
		list = append(list, Certificate{file, authority, c.Subject.CommonName, c.NotAfter, c})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w %s: no PEM certificate in it", ErrCertificate, file)
	}
	return list, nil
}

// Hosts returns the names and addresses by which the holder of the certificate is called as a server, names first.
// There are none for the zero value, and if the certificate is not for a server. The error wraps ErrCertificate.
func (o Options) Hosts() ([]string, error) {
	list, err := o.Certificates()
	if len(list) == 0 || err != nil || !servesTLS(list[0].parsed) {
		return nil, err
	}
	leaf := list[0].parsed
	hosts := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts, nil
}

// servesTLS reports whether callers accept a certificate from a server.
func servesTLS(cert *x509.Certificate) bool {
	return slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth) ||
		slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny) ||
		len(cert.ExtKeyUsage) == 0 && len(cert.UnknownExtKeyUsage) == 0
}

// Verify returns why others would refuse a process that shows this identity at a time: its role, which must be
// role or one of others, its hosts (the names by which it is called), its authority, its dates. Each error wraps
// ErrCertificate and says what to do.
func (o Options) Verify(role Role, hosts []string, now time.Time, others ...Role) (problems []error) {
	if !o.On() {
		return nil
	}
	if _, _, err := o.read(); err != nil {
		return []error{err}
	}
	list, err := o.Certificates()
	if err != nil {
		return []error{err}
	}
	add := func(format string, a ...any) {
		problems = append(problems, fmt.Errorf("%w "+format, append([]any{ErrCertificate}, a...)...))
	}
	leaf, roots, chain := list[0].parsed, x509.NewCertPool(), x509.NewCertPool()
	for _, c := range list[1:] {
		if c.Authority {
			roots.AddCert(c.parsed)
		} else {
			chain.AddCert(c.parsed)
		}
	}
	if id, err := Of(leaf); err == nil && id.Role != role && !slices.Contains(others, id.Role) {
		add("%s: it is of role %s, and this is a %s: issue one with millrace pki issue --role %s", o.Cert, id.Role,
			role, role)
	}
	if !servesTLS(leaf) {
		add("%s: it is not for a server: issue one with --host HOST, the name or address by which this machine is called",
			o.Cert)
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: chain, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		add("%s: it is valid from %s to %s, and it is %s: issue another", o.Cert, day(leaf.NotBefore),
			day(leaf.NotAfter), day(now))
	default:
		add("%s: the authority in %s has not signed it: %w", o.Cert, o.CA, err)
	}
	for _, h := range hosts {
		if err := leaf.VerifyHostname(h); err != nil {
			add("%s: those who call %s will refuse it: issue one with --host %s: %w", o.Cert, h, h, err)
		}
	}
	return problems
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

package identity

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// canonicalURI matches the canonical form of an identity in any trust domain: lower-case scheme and domain, no user,
// port, query or fragment, no empty segment, no percent encoding (SPIFFE-ID, section 2).
var canonicalURI = regexp.MustCompile(`^spiffe://[a-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)

// parseURI reads the text of a URI of a certificate. ours reports whether it is an identity in the project's trust
// domain. A SPIFFE URI that is not in canonical form is an error in every domain, because a text that can be read in
// two ways must be read in neither.
func parseURI(text string) (id Identity, ours bool, err error) {
	scheme, _, ok := strings.Cut(text, ":")
	if !ok || !strings.EqualFold(scheme, "spiffe") {
		return Identity{}, false, nil
	}
	if !canonicalURI.MatchString(text) {
		return Identity{}, false,
			errors.New("the URI is not in canonical form: want spiffe://DOMAIN/SEGMENT/..., the scheme and the " +
				"domain in lower case, " +
				"no user, port, query, fragment, empty segment, slash at the end or percent encoding")
	}
	path, ok := strings.CutPrefix(text, "spiffe://"+trustDomain)
	if !ok || path != "" && path[0] != '/' {
		return Identity{}, false, nil
	}
	role, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	id = Identity{Role: Role(role), Name: name}
	if err := id.Check(); err != nil {
		return Identity{}, false, err
	}
	return id, true, nil
}

// subjectAlternativeName is the extension that holds a certificate's URIs (RFC 5280, 4.2.1.6), and
// uniformResourceIdentifier the tag of one.
var subjectAlternativeName = asn1.ObjectIdentifier{2, 5, 29, 17}

const uniformResourceIdentifier = 6

// alternativeURIs returns the URIs of a certificate as they are written in it. x509.Certificate.URIs has them parsed,
// which loses the case of the scheme and the deviations that url.Parse accepts. A certificate that was made in memory
// and never parsed has only the parsed URIs.
func alternativeURIs(cert *x509.Certificate) ([]string, error) {
	var uris []string
	if len(cert.Raw) == 0 {
		for _, u := range cert.URIs {
			uris = append(uris, u.String())
		}
		return uris, nil
	}
	for _, e := range cert.Extensions {
		if !e.Id.Equal(subjectAlternativeName) {
			continue
		}
		var names []asn1.RawValue
		if rest, err := asn1.Unmarshal(e.Value, &names); err != nil || len(rest) > 0 {
			return nil, fmt.Errorf("its subject alternative name cannot be read: %d bytes are left: %w", len(rest), err)
		}
		for _, n := range names {
			if n.Class == asn1.ClassContextSpecific && n.Tag == uniformResourceIdentifier {
				uris = append(uris, string(n.Bytes))
			}
		}
	}
	if len(uris) != len(cert.URIs) {
		return nil, fmt.Errorf("it carries %d URIs, of which %d can be read", len(uris), len(cert.URIs))
	}
	return uris, nil
}

package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var (
	// ErrCertificate says that a PEM file cannot be used.
	ErrCertificate = errors.New("certificate")
	// ErrPeer says that a peer has no identity, or that its identity does not permit the request.
	ErrPeer = errors.New("peer's identity")
	// ErrInsecure says that an address is not to be served in clear.
	ErrInsecure = errors.New("not in clear")
)

// Role says what an identity may do.
type Role string

// The roles.
const (
	Control Role = "control" // a member of the control plane: may call nodes and the other members
	Node    Role = "node"    // a storage node: may send heartbeats, and fetch partitions from other nodes
	// Launcher is a training launcher: it may submit jobs, attach to them, take their mini-batches, and serve
	// mini-batches to launchers of its owner.
	Launcher Role = "launcher"
	Operator Role = "operator" // a person: may do everything but be a node or a member
)

var roles = []Role{Control, Node, Launcher, Operator}

// Identity is a role and a name, by which a peer is known.
type Identity struct {
	Role Role
	Name string
}

// names matches 1 to 63 of a-z, 0-9, dot and hyphen, as host names have them.
var names = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// trustDomain is the domain of the project's identities (SPIFFE).
const trustDomain = "millrace"

// Check returns an error unless a certificate can carry the identity.
func (id Identity) Check() error {
	if !slices.Contains(roles, id.Role) {
		return fmt.Errorf("role %q: want one of control, node, launcher, operator", id.Role)
	}
	if !names.MatchString(id.Name) {
		return fmt.Errorf("name %q: want 1 to 63 of a-z, 0-9, dot and hyphen, a letter or digit at both ends", id.Name)
	}
	return nil
}

// URI returns spiffe://millrace/ROLE/NAME.
func (id Identity) URI() *url.URL {
	return &url.URL{Scheme: "spiffe", Host: trustDomain, Path: "/" + string(id.Role) + "/" + id.Name}
}

// String returns ROLE/NAME.
func (id Identity) String() string { return string(id.Role) + "/" + id.Name }

// Owner names the launchers that share their jobs with a launcher: those whose name is the same up to the first dot, so
// that the ranks of one trainer on several hosts ("ads.host-3") belong together. It is empty for every other role.
func (id Identity) Owner() string {
	if id.Role != Launcher {
		return ""
	}
	name, _, _ := strings.Cut(id.Name, ".")
	return name
}

// Peer returns the identity of a connection's other side, whose certificate TLS has verified. The error wraps ErrPeer.
func Peer(state *tls.ConnectionState) (Identity, error) {
	if state == nil || len(state.VerifiedChains) == 0 {
		return Identity{}, fmt.Errorf("%w: the connection shows no verified certificate", ErrPeer)
	}
	return Of(state.VerifiedChains[0][0])
}

// Of returns a certificate's identity: the one URI in the project's trust domain, in the canonical form that
// [Identity.URI] writes. The error wraps ErrPeer.
func Of(cert *x509.Certificate) (Identity, error) {
	uris, err := alternativeURIs(cert)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: the certificate of %q: %w", ErrPeer, cert.Subject.CommonName, err)
	}
	var found []Identity
	for _, u := range uris {
		id, ours, err := parseURI(u)
		if err != nil {
			return Identity{}, fmt.Errorf("%w: %.200q: %w", ErrPeer, u, err)
		}
		if ours {
			found = append(found, id)
		}
	}
	if len(found) != 1 {
		return Identity{}, fmt.Errorf("%w: the certificate of %q carries %d URIs spiffe://%s/ROLE/NAME, want one: "+
			"issue it with millrace pki issue",
			ErrPeer, cert.Subject.CommonName, len(found), trustDomain)
	}
	return found[0], nil
}

// Require returns nil when the connection's other side has one of the roles. A connection without TLS passes: only
// loopback, unix sockets and networks that the operator trusts have such connections. The error wraps ErrPeer.
func Require(state *tls.ConnectionState, allowed ...Role) error {
	if state == nil {
		return nil
	}
	id, err := Peer(state)
	if err != nil {
		return err
	}
	if !slices.Contains(allowed, id.Role) {
		return fmt.Errorf("%w: %s may not do this; it takes one of the roles %v", ErrPeer, id, allowed)
	}
	return nil
}

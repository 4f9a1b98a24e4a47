package site

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/internal/strictyaml"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk"
)

// Names of the files and folders in a site.
const (
	controlName = "control0"
	nodeName    = "node0"
	driveName   = "d0"
)

// renewTime is how long before a certificate ends a new one is issued.
const renewTime = 14 * 24 * time.Hour

// Make makes the missing parts, and changes no part that is there.
func (s *Site) Make(ctx context.Context) error {
	for _, dir := range []string{"pki", "drives", "control", "node", "run", "log"} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return err
		}
	}
	if err := s.makeIdentities(); err != nil {
		return err
	}
	if err := s.makeDrive(ctx); err != nil {
		return err
	}
	if err := s.makeConfig(); err != nil {
		return err
	}
	return s.makeContexts()
}

// makeIdentities makes the authority and the certificates. It replaces a certificate that is there only if it
// cannot be used or ends soon.
func (s *Site) makeIdentities() error {
	dir := s.path("pki")
	had, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var repaired []string
	if why := s.authorityFault(); why != nil {
		if err := removeFiles(filepath.Join(dir, identity.AuthorityCert),
			filepath.Join(dir, identity.AuthorityKey)); err != nil {
			return err
		}
		host, err := os.Hostname()
		if err != nil {
			host = "this machine"
		}
		if err := identity.InitAuthority(dir, "millrace up on "+host); err != nil {
			return err
		}
		s.renewed = true
		repaired = append(repaired, fmt.Sprintf("a new authority: %v", why))
	}
	for _, r := range s.requests() {
		o := s.identityOf(r.Identity)
		why := certificateFault(o)
		if why == nil {
			continue
		}
		if err := removeFiles(o.Cert, o.Key); err != nil {
			return err
		}
		if err := identity.Issue(dir, r, o.Cert, o.Key); err != nil {
			return err
		}
		repaired = append(repaired, fmt.Sprintf("a new certificate for %s: %v", r.Identity, why))
	}
	switch {
	case len(had) == 0:
		s.did(Made, "authority and certificates", "%s", dir)
	case len(repaired) > 0:
		s.did(Repaired, "authority and certificates", "%s: %s", dir, strings.Join(repaired, "; "))
	default:
		s.did(There, "authority and certificates", "%s", dir)
	}
	return nil
}

// removeFiles removes files that may be missing.
func removeFiles(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// authorityFault returns why the authority cannot sign, or nil if it can.
func (s *Site) authorityFault() error {
	pair, err := tls.LoadX509KeyPair(s.path("pki", identity.AuthorityCert), s.path("pki", identity.AuthorityKey))
	if err != nil {
		return briefError(err)
	}
	return checkEnd(pair.Leaf)
}

// certificateFault returns why a certificate cannot be used, or nil if it can.
func certificateFault(o identity.Options) error {
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return briefError(err)
	}
	ca, err := os.ReadFile(o.CA)
	if err != nil {
		return briefError(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return err
	}
	return checkEnd(pair.Leaf)
}

// checkEnd returns an error if a certificate ends soon.
func checkEnd(c *x509.Certificate) error {
	if left := time.Until(c.NotAfter); left < renewTime {
		return fmt.Errorf("the one before ended, or ends, at %s", c.NotAfter.Format(time.DateOnly))
	}
	return nil
}

// briefError returns a short error for a file that is missing, and the error itself otherwise.
func briefError(err error) error {
	if missing := (*os.PathError)(nil); errors.As(err, &missing) && errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s was missing", filepath.Base(missing.Path))
	}
	return err
}

// requests returns the certificates of a site.
func (s *Site) requests() []identity.Request {
	return []identity.Request{
		{Identity: identity.Identity{Role: identity.Control, Name: controlName}, Hosts: hosts(s.rec.Control)},
		{Identity: identity.Identity{Role: identity.Node, Name: nodeName}, Hosts: hosts(s.rec.Node)},
		{Identity: s.operator()},
		// With hosts, the rank's own CPUs on this machine may be a worker.
		{Identity: s.launcher(), Hosts: hosts(s.rec.Control)},
	}
}

// operator returns the identity of the site's user.
func (s *Site) operator() identity.Identity {
	return identity.Identity{Role: identity.Operator, Name: s.rec.Operator}
}

// launcher returns the identity of the training launchers of the site's user.
func (s *Site) launcher() identity.Identity {
	return identity.Identity{Role: identity.Launcher, Name: s.rec.Operator}
}

// hosts returns the names by which a daemon of this machine is called.
func hosts(listen string) []string {
	list := []string{"localhost", "127.0.0.1", "::1"}
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "localhost" && host != "127.0.0.1" &&
		host != "::1" {
		list = append(list, host)
	}
	return list
}

// identityOf returns the files of an identity of the site.
func (s *Site) identityOf(id identity.Identity) identity.Options {
	stem := s.path("pki", string(id.Role)+"-"+id.Name)
	return identity.Options{Cert: stem + ".pem", Key: stem + ".key", CA: s.path("pki", identity.AuthorityCert)}
}

// Identity returns the files of the site's user.
func (s *Site) Identity() identity.Options { return s.identityOf(s.operator()) }

// makeDrive makes the drive.
func (s *Site) makeDrive(ctx context.Context) error {
	flash := s.path("drives", driveName+".flash")
	capacity, err := node.Bytes(s.rec.DriveSize).MarshalText()
	if err != nil {
		return err
	}
	size := fmt.Sprintf("%s, %s", capacity, flash)
	switch _, err := os.Lstat(flash); {
	case err == nil:
		s.did(There, "drive "+driveName, "%s", size)
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	did := Made
	if _, err := os.Lstat(flash + ".json"); err == nil { // its flash was removed, and its partitions with it
		if err := removeFiles(flash + ".json"); err != nil {
			return err
		}
		did, size = Repaired, size+": its flash was missing; it is empty now"
	}
	dev, err := sdk.Create(ctx, fmt.Sprintf("%s?size=%dB", fileURI(flash), s.rec.DriveSize), sdk.DeviceOptions{})
	if err != nil {
		return err
	}
	s.did(did, "drive "+driveName, "%s", size)
	return dev.Close()
}

// fileURI returns the URI of a drive in a file.
func fileURI(path string) string {
	return "file:" + strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(path)
}

// configHead begins a configuration that is made here.
const configHead = "# The configuration of the storage node that millrace up made. It may be edited: " +
	"millrace up keeps it as it is, and millrace down\n" +
	"# followed by millrace up takes it up. If it is removed, millrace up makes it again.\n\n"

// makeConfig writes the node's configuration. It reads a configuration that is there, so that an error in it is found
// now.
func (s *Site) makeConfig() error {
	path := s.path("node.yaml")
	if _, err := os.Lstat(path); err == nil {
		if _, err := node.ReadConfig(path); err != nil {
			return fmt.Errorf("%w: correct it, or remove it so that millrace up makes it again", err)
		}
		s.did(There, "configuration of the node", "%s", path)
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	id := s.identityOf(identity.Identity{Role: identity.Node, Name: nodeName})
	c := node.DefaultConfig()
	c.Name, c.Listen, c.Control, c.StateDir = nodeName, []string{s.rec.Node}, []string{s.ControlURL()}, s.path("node")
	c.TLS = node.TLSConfig{Cert: id.Cert, Key: id.Key, CA: id.CA}
	c.Drives = []node.DriveConfig{{Name: driveName, URI: fileURI(s.path("drives", driveName+".flash"))}}
	if err := c.Check(); err != nil {
		return err
	}
	if err := wholefile.Write(path, append([]byte(configHead), strictyaml.Print(c)...)); err != nil {
		return err
	}
	s.did(Made, "configuration of the node", "%s", path)
	return nil
}

// namedContext is a context of the site in contexts.yaml.
type namedContext struct {
	name string
	contexts.Context
}

// contexts returns the contexts of the site: that of its user first, then that of the user's launchers.
func (s *Site) contexts() []namedContext {
	of := func(name string, id identity.Options) namedContext {
		return namedContext{name, contexts.Context{Control: []string{s.ControlURL()}, Cert: id.Cert, Key: id.Key,
			CA: id.CA}}
	}
	return []namedContext{
		of(s.rec.Context, s.Identity()), of(launcherContext(s.rec.Context), s.identityOf(s.launcher())),
	}
}

// launcherContext returns the name of the context of a site's launchers.
func launcherContext(name string) string { return name + "-launcher" }

// makeContexts adds the contexts, and makes that of the site's user the current one if it was missing. It leaves a
// different context of one of the names alone.
func (s *Site) makeContexts() error {
	before := s.rec.Before
	did := map[string]Did{}
	err := contexts.Update(s.rec.Contexts, func(f *contexts.File) error {
		for _, c := range s.contexts() {
			have, ok := f.Contexts[c.name]
			if ok && !have.Equal(c.Context) {
				return fmt.Errorf("context %s in %s: %w: it names %s: give another name with --context, or remove it "+
					"(millrace context remove %s)",
					c.name, s.rec.Contexts, ErrForeign, strings.Join(have.Control, ", "), c.name)
			}
			if ok {
				did[c.name] = There
				continue // another context that was made current stays so
			}
			did[c.name] = Made
			f.Contexts[c.name] = c.Context
			if c.name != s.rec.Context {
				continue
			}
			if f.Current != "" {
				before = f.Current
			}
			f.Current = c.name
		}
		return nil
	})
	if err != nil {
		return err
	}
	if before != s.rec.Before {
		s.rec.Before = before
		if err := s.save(); err != nil {
			return err
		}
	}
	for _, c := range s.contexts() {
		s.did(did[c.name], "context "+c.name, "%s", s.rec.Contexts)
	}
	return nil
}

// removeContexts removes the contexts and makes the previous context current again. It does not touch a context that
// was changed meanwhile.
func (s *Site) removeContexts() error {
	did := map[string]Did{}
	err := contexts.Update(s.rec.Contexts, func(f *contexts.File) error {
		for _, c := range s.contexts() {
			did[c.name] = Absent
			if have, ok := f.Contexts[c.name]; !ok || !have.Equal(c.Context) {
				continue
			}
			did[c.name] = Removed
			delete(f.Contexts, c.name)
			if f.Current != c.name {
				continue
			}
			f.Current = ""
			if _, ok := f.Contexts[s.rec.Before]; ok {
				f.Current = s.rec.Before
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range s.contexts() {
		s.did(did[c.name], "context "+c.name, "%s", s.rec.Contexts)
	}
	return nil
}

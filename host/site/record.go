package site

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/internal/filelock"
	"github.com/millrace/millrace/internal/wholefile"
)

var (
	// ErrForeign says that something is there that this package did not make, and so leaves alone.
	ErrForeign = errors.New("not made by millrace up")
	// ErrOther says that the site was made with another option.
	ErrOther = errors.New("the site was made otherwise")
	// ErrDaemon says that a daemon does not start, or does not stop.
	ErrDaemon = errors.New("daemon")
)

// Options describe a site. A zero field takes the value that the site was made with, or the default.
type Options struct {
	Dir     string // the site's folder
	Program string // path of millrace
	// Control and Node are HOST:PORT of the daemons; port 0 picks one when the site is made, and keeps it.
	Control, Node string
	DriveSize     int64  // bytes of the drive
	Context       string // name of the context
	Contexts      string // path of contexts.yaml
	Version       string // Version is that of Program, for a reader of the record.
}

// Defaults of Options.
const (
	DefaultControl   = "127.0.0.1:7460"
	DefaultNode      = "127.0.0.1:7070"
	DefaultDriveSize = 16 << 30 // the file is sparse
	DefaultContext   = "local"
)

// record is up.json: the options that the site was made with.
type record struct {
	MadeBy    string `json:"made_by"`
	Version   string `json:"version"`
	Control   string `json:"control"`
	Node      string `json:"node"`
	DriveSize int64  `json:"drive_bytes"`
	Context   string `json:"context"`
	Contexts  string `json:"contexts"`
	Operator  string `json:"operator"` // name in the user's certificate
	Systemd   bool   `json:"systemd"`
	// Before is the context that was current before the site's; millrace down makes it current again.
	Before string `json:"context_before"`
}

const (
	madeBy     = "millrace up"
	recordFile = "up.json"
	lockName   = "up.lock"
)

// Site is a cluster on this machine.
type Site struct {
	o       Options
	rec     record
	lock    *os.File
	renewed bool // certificates were replaced under daemons that may run

	Steps []Step // the steps that were done so far
}

// Did says what happened to a part.
type Did string

// The things that can happen to a part.
const (
	Made     Did = "made"
	There    Did = "there"
	Repaired Did = "repaired"
	Started  Did = "started"
	Runs     Did = "runs"
	Stopped  Did = "stopped"
	Removed  Did = "removed"
	Absent   Did = "not there"
)

// Step is one part of the site, and what happened to it.
type Step struct {
	What string `json:"part"`
	Did  Did    `json:"action"`
	Note string `json:"note"` // where it is, or why
}

// did records what happened to a part.
func (s *Site) did(did Did, what, format string, a ...any) {
	s.Steps = append(s.Steps, Step{What: what, Did: did, Note: fmt.Sprintf(format, a...)})
}

// DefaultDir returns the folder of a user's site: millrace in the user's folder of data.
func DefaultDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "millrace"), nil
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "millrace"), nil
	}
	return "", errors.New("neither XDG_DATA_HOME nor HOME says where data is kept: set one, or give --dir")
}

// Find opens a site that exists and locks it. The error wraps os.ErrNotExist if the folder is not there or is empty,
// and ErrForeign if something else is in it.
func Find(o Options) (*Site, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	s := &Site{o: o}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(s.path(recordFile))
	if errors.Is(err, os.ErrNotExist) {
		for _, e := range entries {
			if e.Name() != lockName {
				return nil, fmt.Errorf("folder %s: %w: it holds %s, and no %s: give another folder with --dir", dir,
					ErrForeign, e.Name(), recordFile)
			}
		}
		return nil, fmt.Errorf("folder %s: %w", dir, os.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s.rec); err != nil || s.rec.MadeBy != madeBy || s.rec.check() != nil {
		if err == nil {
			err = s.rec.check()
		}
		return nil, fmt.Errorf("%s: %w: it does not read as the record of a site (%w): give another folder with --dir",
			s.path(recordFile), ErrForeign, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s: %w: something follows the record", s.path(recordFile), ErrForeign)
	}
	if err := s.acquire(); err != nil {
		return nil, err
	}
	return s, nil
}

// check returns an error unless a record can be used.
func (r *record) check() error {
	if r.MadeBy != madeBy {
		return fmt.Errorf("made_by is %.80q", r.MadeBy)
	}
	for _, addr := range []string{r.Control, r.Node} {
		if err := CheckAddress(addr); err != nil {
			return err
		}
	}
	if r.DriveSize <= 0 || !filepath.IsAbs(r.Contexts) {
		return errors.New("drive_bytes or contexts make no sense")
	}
	if err := contexts.CheckName(r.Context); err != nil {
		return err
	}
	return contexts.CheckName(launcherContext(r.Context))
}

// CheckAddress returns an error unless daemons of a site can listen at an address.
func CheckAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: want HOST:PORT: %w", addr, err)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("address %q is every address of this machine: name the one by which it is reached, as "+
			"127.0.0.1:%s", addr, port)
	}
	return nil
}

// Open finds a site, or makes its folder and record, and locks it. The error wraps ErrForeign for a folder that is
// something else, and ErrOther for an option that contradicts the option with which the site was made.
func Open(o Options) (*Site, error) {
	s, err := Find(o)
	if err == nil {
		if err := s.checkOptions(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	s = &Site{o: o}
	if s.rec, err = o.record(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := s.acquire(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(s.path(recordFile)); err == nil { // somebody else made it while this waited for the lock
		if err := s.Close(); err != nil {
			return nil, err
		}
		return Open(o)
	}
	if err := s.save(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.did(Made, "folder", "%s", o.Dir)
	return s, nil
}

// record returns the record of a site that is made with these options.
func (o Options) record() (record, error) {
	r := record{MadeBy: madeBy, Version: o.Version, Control: o.Control, Node: o.Node, DriveSize: o.DriveSize,
		Context: o.Context, Contexts: o.Contexts, Operator: operatorName()}
	for _, d := range []struct {
		to  *string
		def string
	}{{&r.Control, DefaultControl}, {&r.Node, DefaultNode}, {&r.Context, DefaultContext}} {
		if *d.to == "" {
			*d.to = d.def
		}
	}
	if r.DriveSize == 0 {
		r.DriveSize = DefaultDriveSize
	}
	if err := r.check(); err != nil {
		return r, err
	}
	var err error
	if r.Control, err = pickPort(r.Control); err != nil {
		return r, err
	}
	r.Node, err = pickPort(r.Node)
	return r, err
}

// pickPort turns port 0 into a port that is free.
func pickPort(addr string) (string, error) {
	if !strings.HasSuffix(addr, ":0") {
		return addr, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// checkOptions compares the options with those that the site was made with.
func (s *Site) checkOptions() error {
	for _, c := range []struct{ what, asked, have string }{
		{"control plane at", s.o.Control, s.rec.Control},
		{"node at", s.o.Node, s.rec.Node},
		{"context", s.o.Context, s.rec.Context},
	} {
		if c.asked != "" && c.asked != c.have && !strings.HasSuffix(c.asked, ":0") {
			return fmt.Errorf("%s: %w: %s %s, not %s: leave the flag out, or give another folder with --dir", s.o.Dir,
				ErrOther, c.what, c.have, c.asked)
		}
	}
	if s.o.DriveSize != 0 && s.o.DriveSize != s.rec.DriveSize {
		return fmt.Errorf("%s: %w: its drive has %d bytes, not %d: leave the flag out, or give another folder with "+
			"--dir", s.o.Dir, ErrOther, s.rec.DriveSize, s.o.DriveSize)
	}
	return nil
}

// acquire waits for the folder's lock.
func (s *Site) acquire() error {
	f, err := os.OpenFile(s.path(lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := filelock.Lock(f); err != nil {
		return errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	s.lock = f
	return nil
}

// Close releases the folder for others. The daemons go on.
func (s *Site) Close() error {
	if s.lock == nil {
		return nil
	}
	err := s.lock.Close()
	s.lock = nil
	return err
}

// save writes up.json.
func (s *Site) save() error {
	b, err := json.MarshalIndent(s.rec, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(s.path(recordFile), append(b, '\n'))
}

// path returns a path in the site's folder.
func (s *Site) path(elem ...string) string {
	return filepath.Join(append([]string{s.o.Dir}, elem...)...)
}

// Dir returns the site's folder.
func (s *Site) Dir() string { return s.o.Dir }

// Context returns the name of the site's context.
func (s *Site) Context() string { return s.rec.Context }

// Managed reports whether systemd runs the daemons.
func (s *Site) Managed() bool { return s.rec.Systemd }

// ControlURL returns where the control plane is reached.
func (s *Site) ControlURL() string { return "https://" + s.rec.Control }

// NodeURL returns where the node is reached.
func (s *Site) NodeURL() string { return "https://" + s.rec.Node }

// operatorName returns the user's name as a certificate can carry it.
func operatorName() string {
	u, err := user.Current()
	if err != nil {
		return "operator"
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-':
			return r
		case r == '_' || r == ' ' || r == '\\':
			return '-'
		}
		return -1
	}, strings.ToLower(u.Username))
	if name = strings.Trim(name, ".-"); name == "" || len(name) > 63 {
		return "operator"
	}
	return name
}

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/machineload"
	"github.com/millrace/millrace/internal/ownership"
	"github.com/millrace/millrace/sdk"
)

// Finding is the result of an examination for one part of a configuration.
type Finding struct {
	Part  string `json:"part"`  // as "drives[0] d0"
	Level string `json:"level"` // fine, warning, problem
	Says  string `json:"message"`
}

// Levels of findings. A node does not work as configured while there is a problem.
const (
	Fine    = "fine"
	Warning = "warning"
	Problem = "problem"
)

const (
	// expirySoon is how long before its end a certificate is warned of.
	expirySoon = 30 * 24 * time.Hour
	// examineTime bounds how long a drive on another machine may take to answer.
	examineTime = 5 * time.Second
)

// examination collects findings.
type examination struct {
	c          *Config
	otherRoles []identity.Role // The certificate may have these roles beside the role node.
	findings   []Finding
}

// add adds a finding.
func (x *examination) add(part, level, format string, a ...any) {
	x.findings = append(x.findings, Finding{part, level, fmt.Sprintf(format, a...)})
}

// addError adds a problem, or, if err is nil, that all is well.
func (x *examination) addError(part string, err error, fine string) {
	if err != nil {
		x.add(part, Problem, "%v", err)
		return
	}
	x.add(part, Fine, "%s", fine)
}

// Examine examines everything that the configuration names, as the user that runs this process: files, folders,
// certificates, addresses and drives. It locks drives in files for a moment and does not change them, calls drives
// elsewhere, and leaves nothing behind.
func (c *Config) Examine(ctx context.Context, now time.Time) []Finding {
	return c.ExamineWith(ctx, now)
}

// ExamineWith is Examine for a process whose certificate may have a role of others in place of the role node.
func (c *Config) ExamineWith(ctx context.Context, now time.Time, others ...identity.Role) []Finding {
	x := &examination{c: c, otherRoles: others}
	x.stateDir()
	x.certificates(now)
	for i, addr := range c.Listen {
		x.listen(ctx, fmt.Sprintf("listen[%d] %s", i, addr), addr)
	}
	for i, u := range c.Control {
		x.control(fmt.Sprintf("control[%d] %s", i, u), u)
	}
	if c.Image.File != "" || len(c.Image.Keys) > 0 {
		_, err := loadImage(c.Image)
		x.addError("image", err, "can be read")
	}
	if len(c.Drives) == 0 {
		x.add("drives", Warning, "there are none: the node will hold nothing")
	}
	x.examineEngines(runtime.GOMAXPROCS(0), machineload.New(machineload.Options{}).MemoryLimit())
	for i := range c.Drives {
		x.drive(ctx, c.drivePart(i), c.Drives[i].URI)
	}
	return x.findings
}

// checkWritable returns why no file can be made in a folder, or nil.
func checkWritable(folder string) error {
	f, err := os.CreateTemp(folder, ".millrace-check-*")
	if err != nil {
		return ownership.Explain(err, filepath.Join(folder, "none"))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// stateDir examines the state folder.
func (x *examination) stateDir() {
	dir := x.c.StateDir
	if dir == "" {
		x.add("state_dir", Warning,
			"none: P is measured again after each start, and a leader that was replaced before it might be believed")
		return
	}
	_, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		if err = checkWritable(filepath.Dir(dir)); err == nil {
			x.add("state_dir", Fine, "%s will be made", dir)
			return
		}
	} else if err == nil {
		err = checkWritable(dir)
	}
	x.addError("state_dir", err, dir+" takes files")
}

// certificates examines the node's identity, and when its certificates end.
func (x *examination) certificates(now time.Time) {
	o := x.c.identity()
	if !o.On() {
		return
	}
	problems := o.Verify(identity.Node, x.hosts(), now, x.otherRoles...)
	for _, err := range problems {
		x.add("tls", Problem, "%v", ownership.Explain(err, x.unreadable()))
	}
	list, err := o.Certificates()
	if err != nil {
		return // Verify has reported it
	}
	for _, c := range list {
		left := c.Expires.Sub(now)
		switch {
		case left <= 0 && c.Authority:
			x.add("tls", Problem, "%s: the authority %s ended on %s", c.File, c.Subject,
				c.Expires.UTC().Format(time.DateOnly))
		case left > 0 && left < expirySoon:
			x.add("tls", Warning, "%s: %s ends on %s, in %d days: issue another", c.File, c.Subject,
				c.Expires.UTC().Format(time.DateOnly), int(left.Hours()/24))
		}
	}
	if own, err := o.Own(); len(problems) == 0 && err == nil {
		until := list[0].Expires.UTC().Format(time.DateOnly)
		if own.Role == identity.Launcher {
			x.add("tls", Fine, "certificate of a launcher, until %s: it is enough with --serves, for a rank of a job of %s",
				until, own.Owner())
		} else {
			x.add("tls", Fine, "certificate of a %s, until %s", own.Role, until)
		}
	}
}

// unreadable returns the first of the identity's files that cannot be read, or "".
func (x *examination) unreadable() string {
	for _, path := range []string{x.c.TLS.Cert, x.c.TLS.Key, x.c.TLS.CA} {
		f, err := os.Open(path)
		if err != nil {
			return path
		}
		_ = f.Close() // nothing was written
	}
	return ""
}

// hosts returns the names and addresses by which the node is called over TLS.
func (x *examination) hosts() (hosts []string) {
	for _, raw := range x.c.Advertise {
		if u, err := url.Parse(raw); err == nil && u.Scheme == "https" {
			hosts = append(hosts, u.Hostname())
		}
	}
	if len(x.c.Advertise) > 0 {
		return hosts
	}
	for _, addr := range x.c.Listen {
		h, _, err := net.SplitHostPort(addr)
		if ip := net.ParseIP(h); err != nil || strings.HasPrefix(addr, "unix:") || h == "localhost" || ip != nil &&
			ip.IsLoopback() {
			continue // it is not called from another machine
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// listen listens at the address for a moment. An address that is in use is so by the node itself, if it runs.
func (x *examination) listen(ctx context.Context, part, addr string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		folder := filepath.Dir(path)
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) && strings.HasPrefix(folder, "/run/") {
			x.add(part, Warning,
				"%s is not there: it has to be made at every boot (the packaged service makes /run/millrace)", folder)
			return
		}
		x.addError(part, checkWritable(folder), folder+" takes files")
		return
	}
	l, err := identity.Listen(ctx, addr, x.c.identity().On(), x.c.InsecureNetwork)
	if err == nil {
		err = l.Close()
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		x.add(part, Warning, "it is in use: by this node, if it runs; else another process has the port")
		return
	}
	x.addError(part, err, "can be listened at")
}

// control examines the URL of a member of the control plane.
func (x *examination) control(part, raw string) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		x.add(part, Problem, "%v", err) // Check has reported it
	case u.Scheme == "https" && !x.c.identity().On():
		x.add(part, Problem, "it wants TLS: give tls.cert, tls.key and tls.ca (millrace pki issue --role node)")
	default:
		x.add(part, Fine, "not called: millrace nodes list says whether this node is registered there")
	}
}

// drive examines whether a drive can be opened, or is in service.
func (x *examination) drive(ctx context.Context, part, raw string) {
	u, err := sdk.ParseURI(raw)
	if err != nil {
		x.add(part, Problem, "%v", err) // Check has reported it
		return
	}
	switch u.Scheme {
	case "mem":
		x.add(part, Warning, "it is in memory: what is put there is gone when the node ends")
		return
	case "file":
		err = csd.Check(u.Name)
	default:
		bound, cancel := context.WithTimeout(ctx, examineTime)
		defer cancel()
		var dev *sdk.Device
		if dev, err = sdk.Open(bound, raw, sdk.DeviceOptions{}); err == nil {
			err = dev.Close()
		}
		err = ownership.Explain(err, u.Name)
	}
	if busy := (*csd.BusyError)(nil); errors.As(err, &busy) {
		if busy.Owner != nil && busy.Owner.Name == "node "+x.c.Name {
			x.add(part, Fine, "in service: process %d has it", busy.Owner.Process)
			return
		}
		x.add(part, Problem, "%v", err)
		return
	}
	x.addError(part, err, "can be opened")
}

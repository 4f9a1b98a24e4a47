package sdk

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/fabrics"
)

// ErrURI says that a drive URI is malformed.
var ErrURI = errors.New("malformed drive URI")

// Commands is a command set for computation.
type Commands string

// The command sets.
const (
	Vendor   Commands = "vendor"   // Preprocess, Fetch, Store; the default
	Standard Commands = "standard" // Subsystem Local Memory and Computational Programs
)

// Digests are those that a connection over TCP uses.
type Digests string

// The kinds of digests.
const (
	DigestsNone   Digests = "none"
	DigestsHeader Digests = "header"
	DigestsData   Digests = "data"
	DigestsBoth   Digests = "both"
)

// URI is a parsed drive URI. Zero fields were not given.
type URI struct {
	Scheme   string // mem, file, tcp, nvme
	Name     string // mem: its name, may be empty; file and nvme: the path; tcp: the subsystem's NQN
	Host     string // tcp: host:port
	Size     int64  // bytes of namespace 1
	Diskless bool   // mem and file: size=0, a drive without flash
	LBA      int    // bytes of a block: 512 or 4096
	SLM      int64  // bytes of local memory
	Threads  int    // engine threads, of each region
	Regions  int    // mem and file: of the drive
	Region   int    // in which the device computes
	Commands Commands
	HostNQN  string  // tcp: the name of this host, for the drive's allow-list
	Digests  Digests // tcp

	// tcp: files with the keys with which this host authenticates, and with which the drive must. A URI is shown in
	// errors and logs, so the keys themselves are not in it.
	KeyFile, ControllerKeyFile string

	text string
}

// String returns the URI as it was given.
func (u URI) String() string { return u.text }

// MaxThreads bounds threads=.
const MaxThreads = 256

// ParseURI reads a drive URI. It is strict: an unknown parameter, one given twice, or a number out of range is an
// error.
func ParseURI(s string) (URI, error) {
	u := URI{text: s}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("drive URI %q: %s: %w", s, fmt.Sprintf(format, args...), ErrURI)
	}
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok {
		return URI{}, bad("begins with no scheme; for flash in a file write file:%s", s)
	}
	u.Scheme = scheme
	rest, query, hasQuery := strings.Cut(rest, "?")
	if strings.Contains(s, "#") {
		return URI{}, bad("holds a #; write it as %%23")
	}
	switch scheme {
	case "mem", "file", "nvme":
		name, err := url.PathUnescape(rest)
		if err != nil {
			return URI{}, bad("%v", err)
		}
		if strings.ContainsRune(name, 0) {
			return URI{}, bad("the name holds a NUL")
		}
		if scheme != "mem" && name == "" {
			return URI{}, bad("names no path")
		}
		u.Name = name
	case "tcp":
		full, err := url.Parse("tcp:" + rest)
		if err != nil || full.Host == "" || full.Port() == "" || full.User != nil {
			return URI{}, bad("want tcp://HOST:PORT/NQN")
		}
		if u.Name = strings.TrimPrefix(full.Path, "/"); u.Name == "" {
			return URI{}, bad("names no subsystem; want tcp://HOST:PORT/NQN")
		}
		u.Host = full.Host
	default:
		return URI{}, bad("unknown scheme %q; there are mem:, file:, tcp: and nvme:", scheme)
	}
	if !hasQuery {
		return u, nil
	}
	seen := make(map[string]bool)
	for pair := range strings.SplitSeq(query, "&") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || seen[key] {
			return URI{}, bad("parameter %q has no value or is given twice", pair)
		}
		seen[key] = true
		if err := u.set(key, value); err != nil {
			return URI{}, bad("%v", err)
		}
	}
	if u.Diskless && u.LBA != 0 {
		return URI{}, bad("lba=%d: size=0 is a drive without flash, which has no blocks", u.LBA)
	}
	return u, nil
}

// set takes one query parameter.
func (u *URI) set(key, value string) error {
	var err error
	switch key {
	case "size":
		if value == "0" {
			if u.Scheme != "mem" && u.Scheme != "file" {
				return fmt.Errorf("size=0: only a drive that is opened here, mem: or file:, can be one without flash")
			}
			u.Diskless = true
			return nil
		}
		u.Size, err = quantity.Bytes(value)
	case "slm":
		u.SLM, err = quantity.Bytes(value)
	case "lba":
		if value != "512" && value != "4096" {
			return fmt.Errorf("lba=%s: a block has 512 or 4096 bytes", value)
		}
		u.LBA, err = strconv.Atoi(value)
	case "threads":
		if u.Threads, err = strconv.Atoi(value); err != nil || u.Threads < 1 || u.Threads > MaxThreads {
			return fmt.Errorf("threads=%s: want 1 to %d", value, MaxThreads)
		}
	case "regions":
		u.Regions, err = strconv.Atoi(value)
		switch {
		case u.Scheme != "mem" && u.Scheme != "file":
			return fmt.Errorf("regions=%s: only a drive that is opened here, mem: or file:, gets a number of regions", value)
		case err != nil || u.Regions < 1 || u.Regions > cs.MaxRegions:
			return fmt.Errorf("regions=%s: want 1 to %d", value, cs.MaxRegions)
		}
	case "region":
		if u.Region, err = strconv.Atoi(value); err != nil || u.Region < 0 || u.Region >= cs.MaxRegions {
			return fmt.Errorf("region=%s: want 0 to %d", value, cs.MaxRegions-1)
		}
	case "commands":
		u.Commands = Commands(value)
		if u.Commands != Vendor && u.Commands != Standard {
			return fmt.Errorf("commands=%s: want vendor or standard", value)
		}
	case "hostnqn":
		if u.Scheme != "tcp" {
			return fmt.Errorf("hostnqn=%s: only a drive over TCP asks for a name", value)
		}
		if err := fabrics.CheckNQN(value); err != nil {
			return fmt.Errorf("hostnqn=%s: %w", value, err)
		}
		u.HostNQN = value
	case "keyfile", "ctrlkeyfile":
		path, err := url.PathUnescape(value)
		switch {
		case u.Scheme != "tcp":
			return fmt.Errorf("%s=%s: only a drive over TCP asks a host to authenticate", key, value)
		case err != nil || path == "" || strings.ContainsRune(path, 0):
			return fmt.Errorf("%s=%s: want a path", key, value)
		case key == "keyfile":
			u.KeyFile = path
		default:
			u.ControllerKeyFile = path
		}
	case "digests":
		u.Digests = Digests(value)
		switch {
		case u.Scheme != "tcp":
			return fmt.Errorf("digests=%s: only a connection over TCP has any", value)
		case !slices.Contains([]Digests{DigestsNone, DigestsHeader, DigestsData, DigestsBoth}, u.Digests):
			return fmt.Errorf("digests=%s: want none, header, data or both", value)
		}
	default:
		return fmt.Errorf("unknown parameter %q; there are size, lba, slm, threads, regions, region and commands, and for "+
			"tcp: hostnqn, digests, keyfile and ctrlkeyfile", key)
	}
	if err != nil {
		return fmt.Errorf("%s=%s: %w", key, value, err)
	}
	return nil
}

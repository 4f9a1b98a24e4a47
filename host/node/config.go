package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/drives"
	"github.com/millrace/millrace/host/node/splits"
	"github.com/millrace/millrace/internal/httpbody"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/strictyaml"
	"github.com/millrace/millrace/sdk"
)

// ErrConfig says that a configuration cannot be used.
var ErrConfig = errors.New("node configuration")

// Config is a node's configuration: the YAML document that `millrace node run --config` reads. DefaultConfig has the
// values of fields that a document leaves out.
type Config struct {
	Name            string        `yaml:"name" doc:"name of the node, unique in the cluster: 1 to 63 of a-z, 0-9, dot and hyphen; empty takes the host's name"`
	Listen          []string      `yaml:"listen" doc:"where to serve, HOST:PORT or unix:PATH each; without TLS only loopback addresses, unix sockets and insecure_network"`
	Advertise       []string      `yaml:"advertise" doc:"URLs at which launchers and the control plane reach this node, best first: http(s)://HOST:PORT or unix:PATH, where port 0 is the port of the first address of listen; empty: those of listen"`
	InsecureNetwork string        `yaml:"insecure_network" doc:"a CIDR whose addresses may be served without TLS, because everybody in it is trusted; empty: none"`
	TLS             TLSConfig     `yaml:"tls" doc:"identity of this node towards others; all three files or none (millrace pki)"`
	Control         []string      `yaml:"control" doc:"URLs of the control plane's members; empty: the node works alone"`
	StateDir        string        `yaml:"state_dir" doc:"folder for what is kept over restarts: measured P, checksums, the latest leader's fence; empty: nothing is kept"`
	Drives          []DriveConfig `yaml:"drives" doc:"the node's drives"`
	Text            TextConfig    `yaml:"text" doc:"how partitions of format criteo-tsv are read"`

	Vocabularies VocabularyConfig `yaml:"vocabularies" doc:"vocabularies of jobs, fetched from the control plane"`
	Modules      ModuleConfig     `yaml:"modules" doc:"WebAssembly modules with operators of one's own that this machine's CPU may run; a drive that computes runs those of its active image"`

	Buffers   BufferConfig `yaml:"buffers" doc:"mini-batches that are made and not yet written to a launcher"`
	Runs      RunConfig    `yaml:"runs" doc:"splits that are open"`
	Limits    LimitConfig  `yaml:"limits" doc:"what clients may ask for"`
	Measure   Duration     `yaml:"measure" doc:"least time to measure P of a drive; until it is known to 5 %"`
	DrainTime Duration     `yaml:"drain_time" doc:"how long running splits may go on when the node is told to stop"`
	Log       LogConfig    `yaml:"log" doc:"the log, on standard error"`
	Image     ImageConfig  `yaml:"image" doc:"FPGA image that the drives are kept at"`
}

// TLSConfig names PEM files; see identity.Options.
type TLSConfig struct {
	Cert string `yaml:"cert" doc:"certificate chain of the node, leaf first"`
	Key  string `yaml:"key" doc:"its private key"`
	CA   string `yaml:"ca" doc:"authorities whose certificates peers must show"`
}

// DriveConfig is one drive.
type DriveConfig struct {
	Name        string   `yaml:"name" doc:"name of the drive, unique on the node"`
	URI         string   `yaml:"uri" doc:"the drive: mem:NAME, file:PATH, tcp://HOST:PORT/NQN or nvme:/dev/nvme0, with ?slm=, &threads= and others (docs/commands.md); a drive of several regions may be listed once for each, with ?region=0, ?region=1 and so on (docs/images.md)"`
	Accelerator string   `yaml:"accelerator" doc:"a drive that computes on what the node reads of this one, which is plain, and stores in its memory; it needs no flash; empty: none"`
	Engine      string   `yaml:"engine" doc:"who computes; empty: the drive if it can, else the node's CPU" enum:",drive,cpu,reference"`
	Threads     int      `yaml:"threads" doc:"engine threads of a drive in a file (file:) whose uri names none, and where the CPU computes; 0: drives in files divide the cores that the others leave, at least one each; other drives have 1"`
	Streams     int      `yaml:"streams" doc:"splits of a job at once; 0: two, or one where memory is short"`
	Jobs        int      `yaml:"jobs" doc:"jobs that the drive holds at once: each has an equal part of its memory; 0: 2"`
	SLM         Bytes    `yaml:"slm" doc:"memory of the drive for one job; 0: all of it, divided by jobs"`
	Coalesce    Bytes    `yaml:"coalesce" doc:"largest read that joins neighbouring column chunks; 0: 64KiB, which suits flash"`
	Format      string   `yaml:"format" doc:"what the partitions are; empty: parquet" enum:",parquet,criteo-tsv,criteo-bin"`
	Members     []string `yaml:"members" doc:"members of the volume that are partitions, by name or pattern; empty: all; one that cannot be read is logged and left out; of a drive without flash: files that the node reads, by path, pattern, or URL of http, https or s3"`
}

// TextConfig says how text rows are read.
type TextConfig struct {
	LabelAbsent bool   `yaml:"label_absent" doc:"rows of 39 fields, without a label"`
	Malformed   string `yaml:"malformed" doc:"what becomes of a malformed row" enum:"fail,drop,null"`
}

// VocabularyConfig bounds vocabularies.
type VocabularyConfig struct {
	Disk   Bytes `yaml:"disk" doc:"most bytes of their files, and of those of selections and modules, in the state folder; an unused file goes after a day"`
	Memory Bytes `yaml:"memory" doc:"most bytes of those that jobs use; reading one takes up to 9 times its file"`
}

// ModuleConfig says which modules the CPU may run.
type ModuleConfig struct {
	Images    []string `yaml:"images" doc:"image containers (*.mimg) whose modules the CPU may run"`
	Keys      []string `yaml:"keys" doc:"PEM files with public keys: each of images must be signed by one of them; empty: images need no signature"`
	Submitted bool     `yaml:"submitted" doc:"whether the CPU may also run modules that the submitters of jobs put to the control plane; they are fetched from there and count to vocabularies.disk and vocabularies.memory"`
}

// BufferConfig bounds the memory of mini-batches.
type BufferConfig struct {
	Node Bytes `yaml:"node" doc:"most bytes of all jobs together; a run makes one mini-batch past it at most, when a request waits for it"`
	Job  Bytes `yaml:"job" doc:"most bytes of one job"`
	// Owner is known by tickets; without a control plane there are none.
	Owner Bytes `yaml:"owner" doc:"most bytes of all jobs of one owner (the launchers of one name, or an operator's job), past which its runs make nothing ahead; 0: three quarters of node"`
}

// ownerBytes returns the bound of one owner's bytes.
func (c *BufferConfig) ownerBytes() int64 {
	if c.Owner > 0 {
		return int64(c.Owner)
	}
	return max(int64(c.Node)/4*3, 1)
}

// RunConfig bounds open splits in time. The document calls them runs.
type RunConfig struct {
	Idle      Duration `yaml:"idle" doc:"a run that nobody asks of for so long is closed"`
	Abandoned Duration `yaml:"abandoned" doc:"the same for a run whose clients have all closed their connections"`
	BusyWait  Duration `yaml:"busy_wait" doc:"how long a request for a new split waits for a place on a drive before it is told to come again"`
	WriteTime Duration `yaml:"write_time" doc:"how long writing one response may take, beside a second for every 16MiB: a slower client is cut off"`
}

// LimitConfig bounds what clients may ask for.
type LimitConfig struct {
	RequestBytes      Bytes   `yaml:"request_bytes" doc:"largest body of a request, unpacked"`
	RequestMemory     Bytes   `yaml:"request_memory" doc:"memory of all requests at once, packed, unpacked and decoded; at most half of it is one peer's"`
	RequestsPerSecond float64 `yaml:"requests_per_second" doc:"requests of one peer (address) a second, with bursts of a second's worth; 0: any number"`
	Connections       int     `yaml:"connections" doc:"connections at once; at most half of them and one more are of one address of another machine"`
	Jobs              int     `yaml:"jobs" doc:"jobs prepared at once"`
	OwnerSplits       int     `yaml:"owner_splits" doc:"splits of one owner open at once; 0: any number"`
}

// LogConfig configures the log.
type LogConfig struct {
	Level  string `yaml:"level" doc:"least level that is logged" enum:"debug,info,warn,error"`
	Format string `yaml:"format" doc:"auto is text on a terminal, json elsewhere" enum:"auto,text,json"`
}

// ImageConfig is the image that the drives are kept at.
type ImageConfig struct {
	ID     string   `yaml:"id" doc:"id of the image, 64 hexadecimal digits: file must be it, or without file the drives must have it; empty: whatever file is"`
	File   string   `yaml:"file" doc:"image container (*.mimg) to keep the drives at, one drive after another; with neither file nor id they keep what they have"`
	Policy string   `yaml:"policy" doc:"whether an image must be signed by a key that the drive holds, of drives in this process; empty: as each drive keeps it" enum:",require,warn,off"`
	Keys   []string `yaml:"keys" doc:"PEM files with public keys that sign images, for drives in this process; empty: those that each drive keeps"`
}

// DefaultConfig returns the configuration that an empty document means.
func DefaultConfig() Config {
	return Config{
		Listen:  []string{"127.0.0.1:7070"},
		Text:    TextConfig{Malformed: "fail"},
		Buffers: BufferConfig{Node: 1 << 30, Job: 512 << 20},

		Vocabularies: VocabularyConfig{Disk: 16 << 30, Memory: 4 << 30},
		Runs: RunConfig{Idle: Duration(30 * time.Second), Abandoned: Duration(3 * time.Second),
			BusyWait: Duration(2 * time.Second), WriteTime: Duration(time.Minute)},
		Limits: LimitConfig{RequestBytes: 64 << 20, RequestMemory: httpbody.DefaultMemory, Connections: 1024,
			Jobs: 64, OwnerSplits: 512},
		Measure:   Duration(host.DefaultMeasureTime),
		DrainTime: Duration(time.Minute),
		Log:       LogConfig{Level: "info", Format: "auto"},
	}
}

// ReadConfig reads a configuration file. Errors wrap ErrConfig and name the file, and the line and the column where
// there are any.
func ReadConfig(path string) (Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c, err := ParseConfig(b)
	if err != nil {
		return c, fmt.Errorf("%w %s: %w", ErrConfig, path, err)
	}
	return c, nil
}

// ParseConfig reads a document and checks it.
func ParseConfig(b []byte) (Config, error) {
	c := DefaultConfig()
	if err := strictyaml.Decode(b, &c); err != nil {
		return c, err
	}
	return c, c.Check()
}

// PrintDefaults returns DefaultConfig as a document, in which every field has its description.
func PrintDefaults() []byte { return strictyaml.Print(DefaultConfig()) }

// names matches 1 to 63 of a-z, 0-9, dot and hyphen, as package identity does.
var names = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// Check returns an error unless the configuration makes sense. The error begins with the field's path.
func (c *Config) Check() error {
	if c.Name == "" {
		h, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("name: %w; give one", err)
		}
		c.Name = strings.ToLower(h)
	}
	switch {
	case !names.MatchString(c.Name):
		return fmt.Errorf("name: %q is not 1 to 63 of a-z, 0-9, dot and hyphen", c.Name)
	case len(c.Listen) == 0:
		return errors.New("listen: name an address or a unix socket")
	case c.Vocabularies.Disk < 0 || c.Vocabularies.Memory < 0:
		return errors.New("vocabularies: disk and memory must not be below 0")
	case c.Buffers.Node <= 0 || c.Buffers.Job <= 0 || c.Buffers.Owner < 0:
		return errors.New("buffers: node and job must be above 0, owner not below")
	case c.Runs.Idle <= 0 || c.Runs.Abandoned <= 0 || c.Runs.WriteTime <= 0 || c.Runs.BusyWait < 0:
		return errors.New("runs: idle, abandoned and write_time must be above 0, busy_wait not below")
	case c.Limits.RequestBytes <= 0 || c.Limits.Connections <= 0 || c.Limits.Jobs <= 0 || c.Limits.OwnerSplits < 0 ||
		c.Limits.RequestsPerSecond < 0:
		return errors.New("limits: request_bytes, connections and jobs must be above 0, " +
			"requests_per_second and owner_splits not below")
	case c.Limits.RequestMemory < 8*c.Limits.RequestBytes:
		return fmt.Errorf("limits: request_memory %d: want 8 times request_bytes at least, "+
			"so that one peer's largest request finds room", c.Limits.RequestMemory)
	case c.Measure <= 0 || c.DrainTime < 0:
		return errors.New("measure must be above 0, drain_time not below")
	}
	for i, u := range c.Control {
		if _, err := identity.BaseURL(u); err != nil {
			return fmt.Errorf("control[%d]: %w", i, err)
		}
	}
	for i, u := range c.Advertise {
		if _, err := identity.BaseURL(u); err != nil {
			return fmt.Errorf("advertise[%d]: %w", i, err)
		}
	}
	if err := c.checkListen(); err != nil {
		return err
	}
	if c.Image.ID != "" {
		var id image.ID
		if err := id.UnmarshalText([]byte(c.Image.ID)); err != nil {
			return fmt.Errorf("image.id: %w", err)
		}
	}
	return c.checkDrives()
}

// checkDrives checks the drives, and that no drive, and no region of a drive, is there twice.
func (c *Config) checkDrives() error {
	seen, locations := map[string]bool{}, map[string]*driveRegions{}
	for i := range c.Drives {
		d := &c.Drives[i]
		if err := d.check(); err != nil {
			return fmt.Errorf("drives[%d]%w", i, err)
		}
		if seen[d.Name] {
			return fmt.Errorf("drives[%d].name: two drives are called %s", i, d.Name)
		}
		seen[d.Name] = true
		u, err := sdk.ParseURI(d.URI)
		if err != nil {
			continue // check has reported it
		}
		at := location(&u)
		if at == "" {
			continue
		}
		if locations[at] == nil {
			locations[at] = &driveRegions{names: map[int]string{}}
		}
		if err := locations[at].add(d, u); err != nil {
			return fmt.Errorf("drives[%d]%w", i, err)
		}
	}
	return nil
}

// checkListen checks the addresses, and the TLS files and the network that go with them.
func (c *Config) checkListen() error {
	t := c.TLS
	if t != (TLSConfig{}) && (t.Cert == "" || t.Key == "" || t.CA == "") {
		return errors.New("tls: cert, key and ca go together: name all three or none")
	}
	if c.InsecureNetwork != "" {
		if _, err := netip.ParsePrefix(c.InsecureNetwork); err != nil {
			return fmt.Errorf("insecure_network: %w", err)
		}
	}
	for i, addr := range c.Listen {
		if path, ok := strings.CutPrefix(addr, "unix:"); ok {
			if path == "" {
				return fmt.Errorf("listen[%d]: want unix:PATH", i)
			}
			continue
		}
		h, _, err := net.SplitHostPort(addr)
		if err != nil {
			return fmt.Errorf("listen[%d]: want HOST:PORT or unix:PATH: %w", i, err)
		}
		if ip, err := netip.ParseAddr(h); len(c.Advertise) == 0 && (h == "" || err == nil && ip.IsUnspecified()) {
			return fmt.Errorf("listen[%d]: %s is every address of this machine: "+
				"say with advertise by which it is reached", i, addr)
		}
	}
	return nil
}

// check checks one drive.
func (d *DriveConfig) check() error {
	switch {
	case !names.MatchString(d.Name):
		return fmt.Errorf(".name: %q is not 1 to 63 of a-z, 0-9, dot and hyphen", d.Name)
	case d.Threads < 0 || d.Threads > sdk.MaxThreads || d.Streams < 0 || d.Jobs < 0:
		return fmt.Errorf(": threads (at most %d), streams and jobs are not below 0", sdk.MaxThreads)
	}
	u, err := sdk.ParseURI(d.URI)
	if err != nil {
		return fmt.Errorf(".uri: %w", err)
	}
	if u.Scheme == "file" && u.Name == "" {
		return errors.New(".uri: file: wants a path")
	}
	if u.Regions > 0 && u.Region >= u.Regions {
		return fmt.Errorf(".uri: region=%d: regions=%d has 0 to %d", u.Region, u.Regions, u.Regions-1)
	}
	if u.Scheme == "file" && d.Engine != string(host.EngineCPU) && u.Threads > 0 && d.Threads > 0 &&
		u.Threads != d.Threads {
		return fmt.Errorf(".threads: %d, and the uri says %d: leave one of the two out", d.Threads, u.Threads)
	}
	if d.Accelerator != "" {
		if _, err := sdk.ParseURI(d.Accelerator); err != nil {
			return fmt.Errorf(".accelerator: %w", err)
		}
		if d.Engine == string(host.EngineCPU) || d.Engine == string(host.EngineReference) {
			return fmt.Errorf(".accelerator: it computes, and so does engine %s: leave one of the two out", d.Engine)
		}
	}
	for i, m := range d.Members {
		if m == "" {
			return fmt.Errorf(".members[%d]: it is empty", i)
		}
	}
	return nil
}

// hostOptions returns how the drive is opened, with a number of engine threads.
func (d *DriveConfig) hostOptions(t TextConfig, threads int) host.DriveOptions {
	o := host.DriveOptions{
		Name: d.Name, Engine: host.Engine(d.Engine), Threads: threads, Streams: d.Streams, SLM: uint64(d.SLM),
		Coalesce: uint64(d.Coalesce), Members: d.Members, Jobs: cmp.Or(d.Jobs, defaultJobs),
		Accelerator: d.Accelerator,
		Text:        text.Options{LabelAbsent: t.LabelAbsent},
	}
	switch d.Format {
	case "criteo-tsv":
		o.Source = program.CriteoTSV
	case "criteo-bin":
		o.Source = program.CriteoBinary
	}
	switch t.Malformed {
	case "drop":
		o.Text.Policy = text.Drop
	case "null":
		o.Text.Policy = text.Null
	}
	return o
}

// defaultJobs is how many jobs share a drive's memory where the configuration does not say.
const defaultJobs = 2

// driveConfigs returns the drives as package drives takes them. cores is how many this process may use.
func (c *Config) driveConfigs(cores int) []drives.Config {
	var list []drives.Config
	threads := c.divideCores(cores)
	for i := range c.Drives {
		d := &c.Drives[i]
		o := d.hostOptions(c.Text, threads[i])
		if u, err := sdk.ParseURI(d.URI); err == nil {
			o.Regions = c.regionsAt(&u)
		}
		list = append(list, drives.Config{Name: d.Name, URI: d.URI, Host: o})
	}
	return list
}

// behindKernel reports whether a drive of the configuration is behind the kernel's NVMe driver.
func (c *Config) behindKernel() bool {
	return slices.ContainsFunc(c.Drives, func(d DriveConfig) bool { return strings.HasPrefix(d.URI, "nvme:") })
}

// splitOptions returns the bounds of open splits as package splits takes them.
func (c *Config) splitOptions(open splits.Opener, failed func(drive string, err error), fence func() uint64,
	log *slog.Logger) splits.Options {
	return splits.Options{
		Open: open, Failed: failed, Fence: fence, Log: log,
		NodeBytes: int64(c.Buffers.Node), JobBytes: int64(c.Buffers.Job),
		OwnerBytes: c.Buffers.ownerBytes(), OwnerSplits: c.Limits.OwnerSplits,
		Idle: time.Duration(c.Runs.Idle), Abandoned: time.Duration(c.Runs.Abandoned),
		BusyWait: time.Duration(c.Runs.BusyWait),
	}
}

// longestSweep is the longest time between two sweeps.
const longestSweep = time.Second

// sweepInterval returns the time between two searches for splits that no client requests.
func (c *RunConfig) sweepInterval() time.Duration {
	return max(min(time.Duration(c.Abandoned)/4, time.Duration(c.Idle)/4, longestSweep), time.Millisecond)
}

// identity returns the TLS files as package identity takes them.
func (c *Config) identity() identity.Options {
	return identity.Options{Cert: c.TLS.Cert, Key: c.TLS.Key, CA: c.TLS.CA}
}

// Bytes is a size in a document, as 64MiB.
type Bytes int64

// UnmarshalText reads 0, or what quantity.Bytes reads.
func (b *Bytes) UnmarshalText(t []byte) error {
	if string(t) == "0" {
		*b = 0
		return nil
	}
	n, err := quantity.Bytes(string(t))
	*b = Bytes(n)
	return err
}

// MarshalText writes the size in the largest unit that divides it.
func (b Bytes) MarshalText() ([]byte, error) {
	if b == 0 {
		return []byte("0"), nil
	}
	return []byte(quantity.Text(int64(b))), nil
}

// Want describes the form of a size, for errors.
func (*Bytes) Want() string { return "a size, as 64MiB" }

// Duration is a time span in a document, as 1m30s.
type Duration time.Duration

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(t []byte) error {
	v, err := time.ParseDuration(string(t))
	if err != nil || v < 0 {
		return fmt.Errorf("want a time span, as 500ms or 1m30s, got %q", t)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the time span as package time does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Want describes the form of a time span, for errors.
func (*Duration) Want() string { return "a time span, as 500ms" }

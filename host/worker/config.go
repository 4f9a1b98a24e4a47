package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/strictyaml"
	"github.com/millrace/millrace/sdk"
)

// ErrConfig says that a configuration cannot be used.
var ErrConfig = errors.New("worker configuration")

// Config is a worker's configuration: the YAML document that `millrace worker run --config` reads. DefaultConfig has
// the values of fields that a document leaves out. Fields that a storage node has, too, mean the same. The groups exist
// in Go only: the document has their fields side by side.
type Config struct {
	Identity
	Engine
	Source
	Service
	Log node.LogConfig `yaml:"log" doc:"the log, on standard error"`
}

// Identity names a worker and the places at which others reach it, and the control plane that it works for.
type Identity struct {
	Name            string         `yaml:"name" doc:"name of the worker, unique among nodes and workers of the cluster: 1 to 63 of a-z, 0-9, dot and hyphen; empty takes the host's name"`
	Listen          []string       `yaml:"listen" doc:"where to serve, HOST:PORT or unix:PATH each; without TLS only loopback addresses, unix sockets and insecure_network"`
	Advertise       []string       `yaml:"advertise" doc:"URLs at which launchers and the control plane reach this worker, best first: http(s)://HOST:PORT or unix:PATH, where port 0 is the port of the first address of listen; empty: those of listen"`
	InsecureNetwork string         `yaml:"insecure_network" doc:"a CIDR whose addresses may be served without TLS, because everybody in it is trusted; empty: none"`
	TLS             node.TLSConfig `yaml:"tls" doc:"identity of this worker towards others, of the role node, or of the role launcher if it serves one rank (--serves); all three files or none (millrace pki)"`
	Control         []string       `yaml:"control" doc:"URLs of the control plane's members; a worker does nothing without one"`
	StateDir        string         `yaml:"state_dir" doc:"folder for what is kept over restarts: measured P, the latest leader's fence; empty: nothing is kept"`
}

// Engine is what computes, and the memory for it.
type Engine struct {
	Drive   string     `yaml:"drive" doc:"a drive that computes in place of this machine's cores, as tcp://HOST:PORT/NQN: the worker stores what it reads in the drive's memory; it needs no flash (millrace drive serve --diskless); empty: the cores compute"`
	Threads int        `yaml:"threads" doc:"engine threads of this machine's cores; 0: the cores there are; left out with drive, which has its own"`
	Memory  node.Bytes `yaml:"memory" doc:"most bytes of what the worker holds: a half for the engine of all jobs, a quarter for mini-batches made and not yet taken, a quarter for what is read of partitions; with drive a half for each of the two; 0: 512MiB a thread, 1GiB at least and 8GiB at most"`
	Jobs    int        `yaml:"jobs" doc:"jobs prepared at once; each has an equal part of the memory of the engine, or of the drive"`
}

// Source says where and how a worker reads partitions.
type Source struct {
	Requests   int           `yaml:"requests" doc:"requests for ranges of partitions under way at once"`
	ReadTime   node.Duration `yaml:"read_time" doc:"how long one request for a range of a partition may take before another node is asked"`
	ReadTries  int           `yaml:"read_tries" doc:"how often a range is asked for, at all places together, before its split goes to another worker"`
	Partitions []string      `yaml:"partitions" doc:"URLs of partitions that lie in a store and on no node, as s3://rows/2026-11-20/*.parquet, of which this worker tells the control plane when it starts; http(s) has no patterns"`
	Rescan     node.Duration `yaml:"rescan" doc:"how often the URLs of partitions are looked at for objects that were added, removed or written again: they are listed, and each is asked for its identity; 0s: only when the worker starts"`
	Stores     []string      `yaml:"stores" doc:"beginnings of URLs, as s3://rows/2026/ or https://data.example/, of the partitions in stores that this worker may read for jobs, whichever worker announces them, and to which redirects may lead; the folders of partitions are always among them"`
	Local      []string      `yaml:"local" doc:"files, folders and patterns of this machine that hold partitions"`
}

// Service bounds what a worker does for launchers.
type Service struct {
	Runs   node.RunConfig   `yaml:"runs" doc:"splits that are open"`
	Limits node.LimitConfig `yaml:"limits" doc:"what clients may ask for"`

	Vocabularies node.VocabularyConfig `yaml:"vocabularies" doc:"vocabularies of jobs, fetched from the control plane"`
	Modules      node.ModuleConfig     `yaml:"modules" doc:"WebAssembly modules with operators of one's own that this machine's CPU may run; with drive the drive runs those of its active image; a worker that serves one rank runs all of the rank's job"`

	Measure   node.Duration `yaml:"measure" doc:"least time to measure P; until it is known to 5 %"`
	DrainTime node.Duration `yaml:"drain_time" doc:"how long running splits may go on when the worker is told to stop"`
}

// Bounds of a worker's memory.
const (
	memoryPerThread = 512 << 20
	leastMemory     = 64 << 20
	defaultMemory   = 1 << 30
	mostMemory      = 8 << 30 // most memory that a worker takes if its configuration names none
)

// maxJobs bounds Config.Jobs: with more jobs, a job's part of the memory would be too small.
const maxJobs = 64

// DefaultConfig returns the configuration that an empty document means.
func DefaultConfig() Config {
	n := node.DefaultConfig()
	n.Limits.Jobs = 0 // Config.Jobs holds the bound
	return Config{
		Identity: Identity{Listen: []string{"127.0.0.1:7080"}},
		Engine:   Engine{Jobs: 2},
		Source: Source{
			Requests: source.DefaultRequests, ReadTime: node.Duration(5 * time.Second), ReadTries: 8,
			Rescan: node.Duration(5 * time.Minute),
		},
		Service: Service{
			Runs: n.Runs, Limits: n.Limits, Vocabularies: n.Vocabularies, Measure: n.Measure, DrainTime: n.DrainTime,
		},
		Log: n.Log,
	}
}

// ReadConfig reads a configuration file. Errors wrap ErrConfig and name the file and, if they have one, the line and
// the column.
func ReadConfig(path string) (Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c := DefaultConfig()
	if err := strictyaml.Decode(b, &c); err != nil {
		return c, fmt.Errorf("%w %s: %w", ErrConfig, path, err)
	}
	return c, nil
}

// PrintDefaults returns DefaultConfig as a document, in which every field has its description.
func PrintDefaults() []byte { return strictyaml.Print(DefaultConfig()) }

// Check returns an error if the configuration cannot be used. The error begins with the field's path. Check fills in
// fields that are 0 and whose default depends on the machine.
func (c *Config) Check() error {
	if err := c.Engine.check(); err != nil {
		return err
	}
	if c.Memory == 0 {
		c.Memory = node.Bytes(min(max(int64(c.Threads)*memoryPerThread, defaultMemory), mostMemory))
	}
	switch {
	case len(c.Control) == 0:
		return errors.New("control: name the control plane (--control, or a context): a worker gets its work from there")
	case c.Jobs < 1 || c.Jobs > maxJobs:
		return fmt.Errorf("jobs: %d: want 1 to %d", c.Jobs, maxJobs)
	case c.Memory < leastMemory || c.divideMemory().read < source.MinMemory:
		return fmt.Errorf("memory: %d bytes: want at least 64MiB", int64(c.Memory))
	case c.Requests < 1 || c.ReadTries < 1 || c.ReadTime <= 0:
		return errors.New("requests, read_tries and read_time must be above 0")
	case c.readable().Check() != nil:
		return fmt.Errorf("stores: %w", c.readable().Check())
	case c.Limits.Jobs != 0:
		return errors.New("limits.jobs: a worker's jobs are bounded by jobs: leave it out")
	}
	n := c.nodeConfig()
	if err := n.Check(); err != nil {
		return err
	}
	c.Name = n.Name
	return nil
}

// check checks what computes, and fills in the number of engine threads.
func (e *Engine) check() error {
	if e.Drive != "" {
		if _, err := sdk.ParseURI(e.Drive); err != nil {
			return fmt.Errorf("drive: %w", err)
		}
		if e.Threads != 0 {
			return fmt.Errorf("threads: %d: the drive computes, and has engine threads of its own: leave one of the two out",
				e.Threads)
		}
		return nil
	}
	if e.Threads == 0 {
		e.Threads = min(runtime.GOMAXPROCS(0), sdk.MaxThreads)
	}
	if e.Threads < 1 || e.Threads > sdk.MaxThreads {
		return fmt.Errorf("threads: %d: want 0 to %d", e.Threads, sdk.MaxThreads)
	}
	return nil
}

// memoryParts is how a worker's memory is divided, in bytes.
type memoryParts struct {
	engine  int64 // One job has this memory; 0: a drive computes, in memory of its own.
	batches int64 // made and not yet taken, of all jobs
	read    int64 // Partitions that are read take this memory.
}

// divideMemory divides the memory.
func (e *Engine) divideMemory() memoryParts {
	quarter := int64(e.Memory) / 4
	if e.Drive != "" {
		return memoryParts{batches: 2 * quarter, read: 2 * quarter}
	}
	return memoryParts{engine: 2 * quarter / int64(e.Jobs), batches: quarter, read: quarter}
}

// readable returns the beginnings of the URLs that the worker may read. Nodes announce the partitions of stores to all
// workers, which read them with rights of their own: a worker reads only what its own configuration names.
func (s *Source) readable() source.Prefixes {
	list := slices.Clone(source.Prefixes(s.Stores))
	for _, pattern := range s.Partitions {
		if at := source.ParseLocation(pattern); at.InStore() {
			list = append(list, at.Folder())
		}
	}
	return list
}

// nodeConfig returns the configuration of the node as which launchers and the control plane see a worker. It has no
// drive.
func (c *Config) nodeConfig() node.Config {
	n := node.DefaultConfig()
	n.Name, n.Listen, n.Advertise, n.InsecureNetwork = c.Name, c.Listen, c.Advertise, c.InsecureNetwork
	n.TLS, n.Control, n.StateDir = c.TLS, c.Control, c.StateDir
	n.Buffers = node.BufferConfig{Node: node.Bytes(c.divideMemory().batches), Job: node.Bytes(c.divideMemory().batches)}
	n.Runs, n.Limits, n.Measure, n.DrainTime, n.Log = c.Runs, c.Limits, c.Measure, c.DrainTime, c.Log
	n.Limits.Jobs, n.Vocabularies, n.Modules = c.Jobs, c.Vocabularies, c.Modules
	return n
}

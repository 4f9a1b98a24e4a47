package control

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/control/fleet"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/trainmgr/autoscale"
)

// Options configure a member. Data or Etcd is required; the rest may be left out.
type Options struct {
	Data  string   // folder of the embedded etcd member
	Name  string   // name of this member among Peers
	Peers []string // NAME=URL of all embedded members, including this one; none: one member
	// Join lists URLs of members of the control plane to which this member was added (AddMember). Peers then needs to
	// name this member only.
	Join []string
	Etcd []string // endpoints of an etcd that runs elsewhere; then nothing is embedded
	// EtcdClient is the address at which etcdctl can connect: http://127.0.0.1:2379, unix:///PATH, or https://HOST:PORT
	// for certificates with the role control.
	EtcdClient string
	EtcdQuota  int64 // bytes; 0: 2 GiB

	Listen string // HOST:PORT or unix:PATH; empty means DefaultListen
	// Advertise is the URL at which nodes, launchers and other members reach this member; empty: from Listen.
	Advertise string
	Identity  identity.Options // TLS; the zero value: without TLS
	// Trusted is the network (CIDR), beside loopback, in which the member may listen without TLS.
	Trusted string

	Registry *prometheus.Registry // nil: a registry of the member's own
	Logger   *slog.Logger         // nil: silent
	Version  string               // version of the program, for metrics
	// Profile serves /debug/pprof, to callers on loopback only.
	Profile bool

	LeaderTTL time.Duration // 0: 5 s
	// Tick and Election are etcd's heartbeat and election timeout; 0: etcd's defaults.
	Tick, Election time.Duration
	Beat           time.Duration // between two heartbeats of a node; 0: 1 s
	DeadAfter      time.Duration // a node without a heartbeat for this time counts as dead; 0: 5 s
	LeaseTTL       time.Duration // LeaseTTL is how long a split is leased; 0 means the ledger's 10 s.
	SessionTTL     time.Duration // a rank's launcher without a call for this time counts as gone; 0: 10 s
	// AbandonAfter is the time without a call of any rank after which a job ends, unless the job's specification sets
	// another time; 0: DefaultAbandonAfter, below 0: never.
	AbandonAfter time.Duration
	// AttachWithin is the time without a call of any rank after which a job ends to which no rank has attached yet, if
	// that is less than AbandonAfter and the job's specification sets no time; 0: DefaultAttachWithin, below 0: none.
	AttachWithin time.Duration
	ScaleEvery   time.Duration // between two decisions of the autoscaler; 0: DefaultScaleEvery

	// WorkerHook is a shell command that starts and stops workers without data (package hook); empty: no workers are
	// started.
	WorkerHook        string
	WorkerHookTimeout time.Duration // WorkerHookTimeout bounds one run of it; 0 means hook.DefaultTimeout.
	// WorkersLeast and WorkersMost bound the workers that live; WorkersMost 0: DefaultWorkersMost.
	WorkersLeast, WorkersMost int
	WorkerIdle                time.Duration // workers that no job wants for this time are stopped; 0: DefaultWorkerIdle

	// TicketsOptional lets nodes serve launchers that send no ticket, for launchers of a version before tickets.
	TicketsOptional bool

	MaxJobs   int     // jobs that run at once; 0: DefaultMaxJobs
	MaxSplits int     // MaxSplits bounds the splits of an epoch; 0 means DefaultMaxSplits.
	History   int     // ended jobs remembered; 0: DefaultHistory
	Rate      float64 // requests a second of one peer; 0: DefaultRate

	// at once, at most half of them and one more of one peer on another machine; 0: DefaultMaxConnections
	MaxConnections int
	// bytes of requests' messages at once, at most half of them of one peer; 0: httpbody.DefaultMemory
	RequestMemory int64

	// VocabularyFolder is where the member keeps the vocabularies of jobs; empty: a folder of Data, or nowhere.
	VocabularyFolder string
	VocabularyBytes  int64 // most bytes of them; 0: DefaultVocabularyBytes

	// OwnerShare is the part of MaxJobs and of VocabularyBytes that launchers of one owner may have, above 0 and at
	// most 1; 0: DefaultOwnerShare. It does not bound operators, nor callers without TLS, who have no owner.
	OwnerShare float64
}

// Defaults and bounds.
const (
	DefaultListen      = "127.0.0.1:7460"
	DefaultScaleEvery  = 2 * time.Second
	DefaultMaxJobs     = 256
	DefaultOwnerShare  = 0.5
	DefaultWorkersMost = 16
	DefaultWorkerIdle  = time.Duration(autoscale.DefaultPoolIdle * float64(time.Second))
	DefaultMaxSplits   = 16 << 20 // bitmaps of 2 MiB, a few hundred MB of plan
	DefaultHistory     = 100
	DefaultRate        = 20_000
	// DefaultMaxConnections is several times the number that a hundred nodes and as many ranks open.
	DefaultMaxConnections = 4096
	// DefaultVocabularyBytes is room for several vocabularies of the size of Criteo's largest.
	DefaultVocabularyBytes = 16 << 30
	// DefaultAbandonAfter leaves a night and a morning to resume a job whose script was interrupted.
	DefaultAbandonAfter = 24 * time.Hour
	// DefaultAttachWithin leaves a launcher that has submitted a job the time to load a model before it attaches.
	DefaultAttachWithin = 10 * time.Minute

	MaxSpec = 256 << 10        // bytes of a job's document
	maxWait = 30 * time.Second // of a Lease call
)

func (o Options) withDefaults() (Options, error) {
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.ScaleEvery == 0 {
		o.ScaleEvery = DefaultScaleEvery
	}
	if o.LeaderTTL == 0 {
		o.LeaderTTL = store.DefaultTTL
	}
	if o.Beat == 0 {
		o.Beat = time.Second
	}
	if o.DeadAfter == 0 {
		o.DeadAfter = 5 * time.Second
	}
	if o.SessionTTL == 0 {
		o.SessionTTL = presence.DefaultSilence
	}
	if o.AbandonAfter == 0 {
		o.AbandonAfter = DefaultAbandonAfter
	}
	if o.AttachWithin == 0 {
		o.AttachWithin = DefaultAttachWithin
	}
	if o.MaxJobs == 0 {
		o.MaxJobs = DefaultMaxJobs
	}
	if o.OwnerShare == 0 {
		o.OwnerShare = DefaultOwnerShare
	}
	if o.MaxSplits == 0 {
		o.MaxSplits = DefaultMaxSplits
	}
	if o.History == 0 {
		o.History = DefaultHistory
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.WorkersMost == 0 {
		o.WorkersMost = max(DefaultWorkersMost, o.WorkersLeast)
	}
	if o.WorkerIdle == 0 {
		o.WorkerIdle = DefaultWorkerIdle
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = DefaultMaxConnections
	}
	if o.VocabularyBytes == 0 {
		o.VocabularyBytes = DefaultVocabularyBytes
	}
	switch {
	case o.VocabularyBytes < 0:
		return o, fmt.Errorf("control plane: %d bytes of vocabularies: give a number that is not negative",
			o.VocabularyBytes)
	case !(o.OwnerShare > 0 && o.OwnerShare <= 1):
		return o, fmt.Errorf("control plane: an owner's share of %v: want a part of the whole, above 0 and at most 1",
			o.OwnerShare)
	case o.MaxJobs < 0 || o.MaxSplits < 0 || o.History < 0 || !(o.Rate > 0):
		return o, fmt.Errorf("control plane: %d jobs, %d splits, a history of %d, %v requests a second: give "+
			"numbers that are not negative, and a rate above 0", o.MaxJobs, o.MaxSplits, o.History, o.Rate)
	case o.WorkersLeast < 0 || o.WorkersMost < o.WorkersLeast || o.WorkersMost > fleet.MaxNodes:
		return o, fmt.Errorf("control plane: %d to %d workers: want at least 0 and at most %d", o.WorkersLeast,
			o.WorkersMost, fleet.MaxNodes)
	case o.WorkerIdle < 0 || o.WorkerHookTimeout < 0:
		return o, fmt.Errorf("control plane: workers idle for %v are stopped, by a command that may take %v: give "+
			"times that are not negative", o.WorkerIdle, o.WorkerHookTimeout)
	case o.MaxConnections < 0 || o.RequestMemory < 0:
		return o, fmt.Errorf("control plane: %d connections, %d bytes of requests: give numbers that are not "+
			"negative", o.MaxConnections, o.RequestMemory)
	case o.Beat < 0 || o.DeadAfter <= o.Beat || o.LeaseTTL < 0 || o.ScaleEvery < 0:
		return o, fmt.Errorf("control plane: a beat every %v, dead after %v, leases of %v, scaled every %v: want a "+
			"node to be dead after more than one beat", o.Beat, o.DeadAfter, o.LeaseTTL, o.ScaleEvery)
	case o.SessionTTL < time.Second:
		return o, fmt.Errorf("control plane: a launcher counts as gone after %v: want a second or more, since "+
			"launchers call about twice a second", o.SessionTTL)
	case o.AbandonAfter > record.MaxAbandon || o.AbandonAfter > 0 && o.AbandonAfter < time.Second:
		return o, fmt.Errorf("control plane: jobs are abandoned after %v: want a second to %v, or less than 0 for "+
			"never", o.AbandonAfter, record.MaxAbandon)
	case o.AttachWithin > record.MaxAbandon || o.AttachWithin > 0 && o.AttachWithin < time.Second:
		return o, fmt.Errorf("control plane: a rank must attach to a job within %v: want a second to %v, or less than "+
			"0 for no bound", o.AttachWithin, record.MaxAbandon)
	}
	return o, nil
}

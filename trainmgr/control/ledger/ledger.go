package ledger

import (
	"errors"
	"time"

	"github.com/millrace/millrace/sdk/dataset"
)

// Errors that a caller tells apart.
var (
	ErrUnknown  = errors.New("ledger: unknown")
	ErrSession  = errors.New("ledger: the session was fenced off: attach again")
	ErrArgument = errors.New("ledger: argument")
	ErrRecord   = errors.New("ledger: record")
)

// Defaults of Config.
const (
	DefaultLeaseTTL = 10 * time.Second
	DefaultPatience = 2 * time.Second
	DefaultAvoid    = time.Second
)

// Config holds what the whole ledger obeys. The zero value works for tests.
type Config struct {
	Fence      uint64        // create revision of the leader's key: enters lease ids, sessions and records
	LeaseTTL   time.Duration // a lease not held for so long comes back; 0 means DefaultLeaseTTL
	Patience   time.Duration // how long a blocked rank keeps a slot that another waits for; 0 means DefaultPatience
	Avoid      time.Duration // how long a rank is not granted a drive that failed it; 0 means DefaultAvoid
	GrantAfter time.Time     // nothing is granted before: the adopt window
}

// Ledger holds the splits of all jobs of a cluster.
type Ledger struct {
	config Config
}

// New makes an empty ledger.
func New(c Config) *Ledger { return &Ledger{config: c} }

// DriveID names a drive in the cluster.
type DriveID struct{ Node, Name string }

// String returns node/name.
func (d DriveID) String() string { return d.Node + "/" + d.Name }

// Drive is a drive that takes work.
type Drive struct {
	ID         DriveID
	Slots      int      // leases at once: its streams; at least 1
	Partitions []string // what it holds, in the words of Epoch.Partitions
}

// Order says in which order a rank is granted its numbers.
type Order uint8

// The orders.
const (
	Fastest       Order = iota // as the drives allow (the default)
	Deterministic              // strictly ascending
)

// Tail says what becomes of numbers that cannot be shared out equally.
type Tail uint8

// The tails.
const (
	DropTail Tail = iota // at most ranks-1 numbers at the end belong to nobody (the default)
	KeepTail             // the first ranks get one more
)

// Job is a job as the ledger must know it.
type Job struct {
	ID     string
	Ranks  int // 0 means 1
	Tail   Tail
	Order  Order
	Weight float64 // share of a drive among jobs; 0 means 1
	Drives int     // that run at once; 0: no bound
}

// Epoch begins an epoch of a job.
type Epoch struct {
	Job        string
	Number     uint64
	Digest     dataset.Digest // the job's, as tokens name it
	Plan       *dataset.Plan
	Partitions []string       // by the plan's partition index: what a drive must hold (Drive.Partitions)
	Resume     *dataset.Token // what is not owed; nil: everything is. Only of this job and epoch
}

// Session is the right of one consumer to a rank; a later one of the same rank fences it off.
type Session struct {
	Rank  uint32
	Fence uint64
	Seq   uint64
}

// Bytes is the session's wire form.
func (s Session) Bytes() []byte { return nil }

// ParseSession reads the wire form. The error wraps ErrSession.
func ParseSession(b []byte) (Session, error) { return Session{}, ErrSession }

// Attached is what a rank learns when it attaches.
type Attached struct {
	Session Session
	Epoch   uint64
	Token   dataset.Token // what counts as delivered in the rank's range of the epoch, the resumed numbers included
	Owned   []dataset.Run // numbers of the rank, delivered or not
}

// Lease is a piece of a split that is out.
type Lease struct {
	ID       uint64
	Epoch    uint64
	Split    int // place in the plan
	From, To uint64
	Drive    DriveID
}

// Grant is a new lease.
type Grant struct {
	Job  string
	Rank uint32
	Lease
	Again bool // some of it had been granted before
}

// Revocation tells a rank that a lease is gone: what was fetched of it may still be delivered and acknowledged.
type Revocation struct {
	Job   string
	Rank  uint32
	Lease uint64
	Why   string
}

// EpochRef names an epoch.
type EpochRef struct {
	Job    string
	Number uint64
}

// Failure is a job that cannot go on.
type Failure struct{ Job, Why string }

// Effects is what the events since the last call of Ready led to.
type Effects struct {
	Grants  []Grant
	Revoked []Revocation
	Needed  []EpochRef // a rank asks for an epoch that was not begun
	Done    []EpochRef // every owned number is acknowledged
	Failed  []Failure
}

// Report is what a rank says of the leases it works on.
type Report struct {
	Held    []uint64 // extended
	Fetched []uint64 // of held: every mini-batch is at the launcher, no drive is needed any more
	Blocked bool     // the input queue is full: the rank fetches nothing now
}

// Reason says why a lease is given back.
type Reason uint8

// The reasons.
const (
	Stopped    Reason = iota // the trainer stops
	NodeFailed               // another drive, or a later time, may do better
	DataFailed               // it would fail anywhere: the job fails with it
)

// Kind tells records apart.
type Kind uint8

// The kinds of records.
const (
	RanksRecord Kind = iota // sessions and epochs of the ranks
	MarkRecord              // splits before the mark are delivered
	ChunkRecord             // 1,024 splits
)

// Record is a durable piece of state.
type Record struct {
	Job   string
	Kind  Kind
	Epoch uint64
	Chunk uint32
	Data  []byte // nil: delete the key
}

// Key returns the record's key below the job's: "ranks", "e0/mark", "e0/c00000a".
func (r Record) Key() string { return "" }

// RecordOf makes a record of a key and a value. The error wraps ErrRecord.
func RecordOf(job, key string, data []byte) (Record, error) { return Record{}, ErrRecord }

// AddJob makes a job known. It has no epoch yet.
func (l *Ledger) AddJob(j Job) error { return ErrArgument }

// RemoveJob forgets a job; its leases are revoked. Its records are the caller's to delete.
func (l *Ledger) RemoveJob(job string, now time.Time) error { return ErrUnknown }

// FailJob stops a job's grants for good and revokes its leases.
func (l *Ledger) FailJob(job, why string, now time.Time) error { return ErrUnknown }

// Allocate sets how many drives the job runs at once; 0: no bound.
func (l *Ledger) Allocate(job string, drives int, now time.Time) error { return ErrUnknown }

// Begin makes an epoch's plan known. Beginning one that is known changes nothing.
func (l *Ledger) Begin(e Epoch, now time.Time) error { return ErrUnknown }

// Live lists the epochs that ranks are in, ascending: those to Begin after a restore.
func (l *Ledger) Live(job string) []uint64 { return nil }

// PutDrive adds a drive, or says again what it is and holds; it is alive with that.
func (l *Ledger) PutDrive(d Drive, now time.Time) error { return ErrArgument }

// DrainDrive stops, or resumes, granting on a drive; what is out ends.
func (l *Ledger) DrainDrive(d DriveID, drain bool, now time.Time) error { return ErrUnknown }

// LoseDrive says that a drive or its node is dead: its leases, but those fetched, come back and are revoked. PutDrive revives it.
func (l *Ledger) LoseDrive(d DriveID, why string, now time.Time) error { return ErrUnknown }

// RemoveDrive is LoseDrive, and forgets the drive.
func (l *Ledger) RemoveDrive(d DriveID, now time.Time) error { return ErrUnknown }

// Attach makes the caller rank's only consumer. With a token, the rank's delivered set becomes the token's; the token's epoch must be begun (else
// ErrUnknown and an Effects.Needed).
func (l *Ledger) Attach(job string, rank uint32, token *dataset.Token, now time.Time) (Attached, error) {
	return Attached{}, ErrUnknown
}

// Want says that the rank waits for n pieces of the epoch; it replaces what it wanted before.
func (l *Ledger) Want(job string, s Session, epoch uint64, n int, now time.Time) error {
	return ErrUnknown
}

// Hold extends leases. It returns those of Held and Fetched that are not the rank's any more.
func (l *Ledger) Hold(job string, s Session, r Report, now time.Time) (revoked []uint64, err error) {
	return nil, ErrUnknown
}

// Adopt takes over leases that an earlier leader granted; it returns those that cannot be.
func (l *Ledger) Adopt(job string, s Session, leases []Lease, now time.Time) (revoked []uint64, err error) {
	return nil, ErrUnknown
}

// Acknowledge makes numbers of the rank delivered; doing so again changes nothing.
func (l *Ledger) Acknowledge(job string, s Session, epoch uint64, runs []dataset.Run, now time.Time) error {
	return ErrUnknown
}

// Release gives leases back. Unknown ones are passed over.
func (l *Ledger) Release(job string, s Session, leases []uint64, reason Reason, why string, now time.Time) error {
	return ErrUnknown
}

// Tick lets time pass: leases expire, the adopt window ends, patience ends.
func (l *Ledger) Tick(now time.Time) {}

// Ready returns the effects since the last call.
func (l *Ledger) Ready() Effects { return Effects{} }

// Pending counts the records that Flush would return.
func (l *Ledger) Pending() int { return 0 }

// Flush returns at most most records to be made durable, in the order to write them.
func (l *Ledger) Flush(most int) []Record { return nil }

// Snapshot returns all records of a job as they should be stored now.
func (l *Ledger) Snapshot(job string) ([]Record, error) { return nil, ErrUnknown }

// Restore takes a stored record in. Errors wrap ErrRecord or ErrUnknown.
func (l *Ledger) Restore(r Record) error { return ErrRecord }

// Token returns the checkpoint of the whole job, all ranks together: of the earliest epoch that a rank is in.
func (l *Ledger) Token(job string) (dataset.Token, error) { return dataset.Token{}, ErrUnknown }

// JobStatus says where a job stands.
type JobStatus struct {
	Job         string
	Failed      string // why; empty: it goes on
	Epoch       uint64 // the earliest that a rank is in
	MiniBatches uint64 // owned by ranks in that epoch
	Delivered   uint64 // of them
	Redelivered uint64 // leases granted again
	Leases      int
	Running     []DriveID // drives that run for it now
	RowsLeft    int64     // not delivered and not out
	Ranks       []RankStatus
}

// RankStatus says where a rank stands.
type RankStatus struct {
	Rank      uint32
	Attached  bool
	Epoch     uint64
	Owned     uint64 // mini-batches of the epoch
	Delivered uint64
	Leased    uint64
	Wanted    int    // pieces that it waits for
	Out       bool   // everything of the epoch is delivered or leased out
	Waiting   string // why it is not granted more, in words; empty: it waits for nothing, or all is out
}

// Status describes a job.
func (l *Ledger) Status(job string, now time.Time) (JobStatus, error) {
	return JobStatus{}, ErrUnknown
}

// Rank describes a rank; cheaper than Status.
func (l *Ledger) Rank(job string, rank uint32, now time.Time) (RankStatus, error) {
	return RankStatus{}, ErrUnknown
}

// DriveStatus says what a drive does.
type DriveStatus struct {
	Drive  DriveID
	Slots  int
	Leases int    // that occupy slots
	State  string // ready, draining, dead: why, unknown
}

// Drives describes all drives, by name.
func (l *Ledger) Drives() []DriveStatus { return nil }

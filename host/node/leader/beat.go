package leader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
)

// Times of heartbeats when the control plane does not say.
const (
	beatEvery       = time.Second
	beatTimeout     = 3 * time.Second
	firstBeatDelay  = 100 * time.Millisecond
	longestBeatWait = 2 * time.Second // below what makes a node count as dead
	refusedWait     = 5 * time.Second
	clockWarning    = 10 * time.Second
	maxMembers      = 64 // of the control plane, told by its members
)

// Options are what a Beater needs of its node. All are required.
type Options struct {
	Members []string // URLs of the control plane's members; none: nothing is sent
	Client  *http.Client
	Status  func() (*apiv1.NodeStatus, error) // all of it
	Fence   *Fence
	Learn   func(*apiv1.HeartbeatResponse) // of each answer of a leader, before anything else is done by it
	Log     *slog.Logger
}

// Beater sends heartbeats to the control plane's leader. It has one goroutine, Run's.
type Beater struct {
	o    Options
	kick chan struct{} // beat now; capacity 1
	urls []string
	at   int // url that led last

	returned [2]uint64 // fence of the leader that told of leases that came back, and up to where it did

	leader   string
	told     []byte // inventory that the leader has
	want     bool   // the leader asked for the inventory
	lastWord string // what was logged last, so that it is logged once
	skewed   bool
}

// NewBeater makes a Beater. URLs that are none are left out: a configuration is checked before.
func NewBeater(o Options) *Beater {
	b := &Beater{o: o, kick: make(chan struct{}, 1)}
	for _, u := range o.Members {
		if base, err := identity.BaseURL(u); err == nil {
			b.urls = append(b.urls, base)
		}
	}
	return b
}

// Now beats soon: something changed that the control plane should know.
func (b *Beater) Now() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// Run beats until ctx ends.
func (b *Beater) Run(ctx context.Context) {
	if len(b.urls) == 0 {
		return
	}
	delay := firstBeatDelay
	for ctx.Err() == nil {
		wait, err := b.Beat(ctx)
		switch {
		case err == nil:
			delay = firstBeatDelay
			b.say("")
		case ctx.Err() != nil:
			return
		case wait > 0:
			b.say(err.Error())
		default:
			b.say(err.Error())
			wait, delay = delay, min(2*delay, longestBeatWait)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-b.kick:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// say logs what is wrong when it begins and when it has ended.
func (b *Beater) say(what string) {
	if what == b.lastWord {
		return
	}
	b.lastWord = what
	if what == "" {
		b.o.Log.Info("registered with the control plane", "leader", b.leader, "url", b.urls[b.at])
		return
	}
	b.o.Log.Warn("no heartbeat", "error", what)
}

// Beat sends one heartbeat, to member after member until the leader took it. It returns how long to wait for the next; 0 with an error leaves that to a
// backoff.
func (b *Beater) Beat(ctx context.Context) (time.Duration, error) {
	var errs []error
	next := b.at
	for range len(b.urls) + 1 {
		i := next % len(b.urls)
		wait, err := b.send(ctx, b.urls[i])
		if err == nil {
			b.at = i
			return wait, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", b.urls[i], err))
		next = i + 1
		var lost *notLeading
		switch {
		case errors.As(err, &lost):
			if j := b.find(lost.url); j >= 0 && j != i {
				next = j
			}
		case connect.CodeOf(err) == connect.CodeFailedPrecondition, connect.CodeOf(err) == connect.CodeAlreadyExists, connect.CodeOf(err) == connect.CodePermissionDenied:
			return refusedWait, err // the leader's word: it will not change soon
		}
	}
	return 0, errors.Join(errs...)
}

// find returns the place of a member's URL, -1 if it is not among those configured.
func (b *Beater) find(url string) int {
	base, err := identity.BaseURL(url)
	if err != nil {
		return -1
	}
	for i, u := range b.urls {
		if u == base {
			return i
		}
	}
	if len(b.urls) >= maxMembers {
		return -1
	}
	b.urls = append(b.urls, base)
	return len(b.urls) - 1
}

// notLeading is the answer of a member that does not lead, or does not any more.
type notLeading struct {
	url      string
	replaced error // it thinks that it does
}

func (e *notLeading) Error() string {
	if e.replaced != nil {
		return e.replaced.Error()
	}
	if e.url == "" {
		return "it does not lead, and knows no leader"
	}
	return "it does not lead: " + e.url + " does"
}

// maxAnswer bounds a member's answer to a heartbeat: a few numbers and names, and leases that have come back.
const maxAnswer = 16 << 20

// send sends one heartbeat to one member.
func (b *Beater) send(ctx context.Context, url string) (time.Duration, error) {
	status, err := b.o.Status()
	if err != nil {
		return 0, err
	}
	full := b.want || !bytes.Equal(b.told, status.Inventory)
	if !full {
		status.Partitions, status.Schemas = nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	begin := time.Now()
	m, err := apiv1connect.NewControlClient(b.o.Client, url, connect.WithReadMaxBytes(maxAnswer)).Heartbeat(ctx, &apiv1.HeartbeatRequest{
		Status: status, ReturnedFence: b.returned[0], ReturnedSeen: b.returned[1],
	})
	if err != nil {
		return 0, leading(err)
	}
	if err := apiv1.Speaks(m.GetProtocol()); err != nil {
		return 0, connect.NewError(connect.CodeFailedPrecondition, err)
	}
	if err := b.o.Fence.See(m.GetFence()); err != nil {
		return 0, &notLeading{replaced: err}
	}
	b.o.Learn(m)
	b.returned = [2]uint64{m.GetFence(), m.GetReturnedSeen()}
	if full {
		b.told = status.Inventory
	}
	if b.want = m.GetWantInventory(); b.want {
		b.Now()
	}
	if b.leader != m.GetLeader() {
		b.o.Log.Info("control plane", "leader", m.GetLeader(), "from", b.leader, "fence", m.GetFence())
		b.leader = m.GetLeader()
	}
	b.clock(m.GetClockSeconds(), begin)
	if s := m.GetIntervalSeconds(); s > 0 {
		return max(10*time.Millisecond, time.Duration(min(s, 60)*float64(time.Second))), nil
	}
	return beatEvery, nil
}

// clock warns when the two clocks are apart. Nothing depends on them but logs.
func (b *Beater) clock(theirs float64, begin time.Time) {
	if theirs == 0 {
		return
	}
	apart := math.Abs(theirs - float64(begin.UnixNano())/1e9)
	skewed := apart > clockWarning.Seconds()
	if skewed && !b.skewed {
		b.o.Log.Warn("this node's clock and the leader's are apart: logs will not match", "apart_seconds", apart)
	}
	b.skewed = skewed
}

// leading turns the error of a member that does not lead into a *notLeading.
func leading(err error) error {
	var ce *connect.Error
	if !errors.As(err, &ce) {
		return err
	}
	for _, d := range ce.Details() {
		if v, verr := d.Value(); verr == nil {
			if n, ok := v.(*apiv1.NotLeader); ok {
				return &notLeading{url: n.GetLeaderUrl()}
			}
		}
	}
	return err
}

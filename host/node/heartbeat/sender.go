package heartbeat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/wait"
)

const (
	// defaultInterval is the time between heartbeats when the leader names none.
	defaultInterval = time.Second
	// sendTimeout bounds one attempt at one member.
	sendTimeout = 3 * time.Second
	// firstBackoff and longestBackoff are the waits after heartbeats that no member accepted. The longest is below the
	// time after which the control plane takes a node for dead.
	firstBackoff   = 100 * time.Millisecond
	longestBackoff = 2 * time.Second
	// refusedWait is the wait after the leader itself refused the node: its answer will not change soon.
	refusedWait = 5 * time.Second
	// clockTolerance is how far the leader's clock may be from the node's before the log says so.
	clockTolerance = 10 * time.Second
	// maxMembers bounds the members that a Sender knows, because members name other members.
	maxMembers = 64
	// maxAnswer bounds a member's answer in bytes: a few numbers and names, and leases that were returned.
	maxAnswer = 16 << 20
)

// ErrDenied says that the control plane's leader denies a node its registration.
var ErrDenied = errors.New("the control plane does not register this process")

// Options are the things that a Sender needs of its node. All but Members and Denied are required.
type Options struct {
	Members []string // URLs of the control plane's members; none: nothing is sent
	Client  *http.Client
	Status  func() (*apiv1.NodeStatus, error) // with partitions and schemas
	Fence   *Fence
	Learn   func(*apiv1.HeartbeatResponse) // called with every answer of a leader, before the Sender acts on it
	// Denied is called when the leader denies the node its registration, with an error that wraps ErrDenied: the answer
	// changes only when a certificate or a configuration does. nil: the Sender only logs it. Either way it asks again.
	Denied func(error)
	Log    *slog.Logger
}

// Sender sends heartbeats to the control plane's leader. It has one goroutine, Run's; SendSoon and
// Locate are for the others.
type Sender struct {
	o       Options
	trigger chan struct{} // asks for a heartbeat without waiting for the interval; capacity 1
	members []string      // base URLs
	current int           // index of the member that accepted the last heartbeat
	known   atomic.Value  // []string: the members for Locate; the member that accepted the last heartbeat comes first

	returnedFence uint64 // fence of the leader that last listed returned leases,
	returnedSeen  uint64 // and the last of them that the node has seen

	leader        string // its name
	sentInventory []byte // digest of the inventory that the leader has
	wantInventory bool   // the leader asked for the inventory
	lastProblem   string // logged last, so that each problem is logged once
	skewed        bool   // the clocks were apart at the last heartbeat
}

// New makes a Sender. It ignores members whose URL cannot be parsed: the node's configuration was checked before.
func New(o Options) *Sender {
	s := &Sender{o: o, trigger: make(chan struct{}, 1)}
	for _, u := range o.Members {
		if base, err := identity.BaseURL(u); err == nil {
			s.members = append(s.members, base)
		}
	}
	s.publish()
	return s
}

// publish passes the members to Locate.
func (s *Sender) publish() {
	if len(s.members) > 0 {
		s.known.Store(slices.Concat(s.members[s.current:], s.members[:s.current]))
	}
}

// SendSoon makes Run send a heartbeat without waiting for the interval, because something changed that the control
// plane should know. It does not block.
func (s *Sender) SendSoon() {
	select {
	case s.trigger <- struct{}{}:
	default:
	}
}

// Run sends heartbeats until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	if len(s.members) == 0 {
		return
	}
	pauses := wait.Backoff{First: firstBackoff, Longest: longestBackoff}
	for ctx.Err() == nil {
		pause, err := s.Send(ctx)
		switch {
		case err == nil:
			pauses.Reset()
			s.logProblem("")
		case ctx.Err() != nil:
			return
		case pause > 0:
			s.logProblem(err.Error())
		default:
			s.logProblem(err.Error())
			pause = pauses.Next()
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-s.trigger:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// logProblem logs why no member accepts heartbeats, once when that begins and once when it has ended ("").
func (s *Sender) logProblem(problem string) {
	if problem == s.lastProblem {
		return
	}
	s.lastProblem = problem
	if problem == "" {
		s.o.Log.Info("registered with the control plane", "leader", s.leader, "url", s.members[s.current])
		return
	}
	s.o.Log.Warn("no heartbeat", "error", problem)
}

// Send sends one heartbeat, to one member after the other until the leader accepts it. It returns how long to wait
// before the next. An error with a wait of 0 leaves the wait to the caller's backoff.
func (s *Sender) Send(ctx context.Context) (time.Duration, error) {
	var errs []error
	next := s.current
	for range len(s.members) + 1 {
		i := next % len(s.members)
		wait, err := s.sendTo(ctx, s.members[i])
		if err == nil {
			s.current = i
			s.publish()
			return wait, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.members[i], err))
		next = i + 1
		var other *notLeaderError
		switch {
		case errors.As(err, &other):
			if j := s.memberIndex(other.leaderURL); j >= 0 && j != i {
				next = j
			}
		case leaderRefuses(connect.CodeOf(err)):
			if s.o.Denied != nil && connect.CodeOf(err) == connect.CodePermissionDenied {
				s.o.Denied(fmt.Errorf("%w: %w", ErrDenied, err))
			}
			return refusedWait, err
		}
	}
	return 0, errors.Join(errs...)
}

// leaderRefuses reports whether a code is the leader's decision about this node, which another member would not change.
func leaderRefuses(code connect.Code) bool {
	switch code {
	case connect.CodeFailedPrecondition, connect.CodeAlreadyExists, connect.CodePermissionDenied:
		return true
	}
	return false
}

// memberIndex returns the index of a member's URL. It adds an unknown member. It returns -1 if there is no room for
// another member, or if the URL is none.
func (s *Sender) memberIndex(url string) int {
	base, err := identity.BaseURL(url)
	if err != nil {
		return -1
	}
	for i, u := range s.members {
		if u == base {
			return i
		}
	}
	if len(s.members) >= maxMembers {
		return -1
	}
	s.members = append(s.members, base)
	return len(s.members) - 1
}

// notLeaderError is the answer of a member that does not lead.
type notLeaderError struct {
	leaderURL string // "": the member knows no leader
	replaced  error  // set when the member believes that it leads, but its fence is old
}

func (e *notLeaderError) Error() string {
	if e.replaced != nil {
		return e.replaced.Error()
	}
	if e.leaderURL == "" {
		return "it does not lead, and knows no leader"
	}
	return "it does not lead: " + e.leaderURL + " does"
}

// sendTo sends one heartbeat to one member.
func (s *Sender) sendTo(ctx context.Context, url string) (time.Duration, error) {
	status, err := s.o.Status()
	if err != nil {
		return 0, err
	}
	full := s.wantInventory || !bytes.Equal(s.sentInventory, status.Inventory)
	if !full {
		status.Partitions, status.Schemas = nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	begin := time.Now()
	client := apiv1connect.NewControlClient(s.o.Client, url, connect.WithReadMaxBytes(maxAnswer))
	answer, err := client.Heartbeat(ctx, &apiv1.HeartbeatRequest{
		Status: status, ReturnedFence: s.returnedFence, ReturnedSeen: s.returnedSeen,
	})
	if err != nil {
		return 0, notLeader(err)
	}
	if err := apiv1.Speaks(answer.GetProtocol()); err != nil {
		return 0, connect.NewError(connect.CodeFailedPrecondition, err)
	}
	if err := s.o.Fence.See(answer.GetFence()); err != nil {
		return 0, &notLeaderError{replaced: err}
	}
	s.o.Learn(answer)
	if full {
		s.sentInventory = status.Inventory
	}
	s.accept(answer, begin)
	if seconds := answer.GetIntervalSeconds(); seconds > 0 {
		return max(10*time.Millisecond, time.Duration(min(seconds, 60)*float64(time.Second))), nil
	}
	return defaultInterval, nil
}

// accept keeps the contents of the leader's answer. The heartbeat was sent at begin.
func (s *Sender) accept(answer *apiv1.HeartbeatResponse, begin time.Time) {
	s.returnedFence, s.returnedSeen = answer.GetFence(), answer.GetReturnedSeen()
	if s.wantInventory = answer.GetWantInventory(); s.wantInventory {
		s.SendSoon()
	}
	if s.leader != answer.GetLeader() {
		s.o.Log.Info("control plane", "leader", answer.GetLeader(), "from", s.leader, "fence", answer.GetFence())
		s.leader = answer.GetLeader()
	}
	s.compareClocks(answer.GetClockSeconds(), begin)
}

// compareClocks warns when the leader's clock (seconds since 1970, 0 if unknown) and the node's clock are apart. Only
// the reader of two logs depends on them.
func (s *Sender) compareClocks(leaderClock float64, now time.Time) {
	if leaderClock == 0 {
		return
	}
	apart := math.Abs(leaderClock - float64(now.UnixNano())/1e9)
	skewed := apart > clockTolerance.Seconds()
	if skewed && !s.skewed {
		s.o.Log.Warn("this node's clock and the leader's are apart: logs will not match", "apart_seconds", apart)
	}
	s.skewed = skewed
}

// notLeader turns the error of a member that does not lead into a *notLeaderError, and returns other errors unchanged.
func notLeader(err error) error {
	var rpc *connect.Error
	if !errors.As(err, &rpc) {
		return err
	}
	for _, detail := range rpc.Details() {
		if value, verr := detail.Value(); verr == nil {
			if n, ok := value.(*apiv1.NotLeader); ok {
				return &notLeaderError{leaderURL: n.GetLeaderUrl()}
			}
		}
	}
	return err
}

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestRecordings plays incidents that the launcher in Python plays, too: protocol/testdata/recordings/README.md says
// what the steps mean.
func TestRecordings(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("protocol", "testdata", "recordings", "*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			var steps []playedStep
			for line := range strings.Lines(string(b)) {
				var s playedStep
				require.NoError(t, json.Unmarshal([]byte(line), &s))
				steps = append(steps, s)
			}
			p := newPlayer(t, steps)
			for i, s := range steps {
				p.step = fmt.Sprintf("step %d, %s", i+1, strings.Split(string(b), "\n")[i])
				play := p.plays()[s.Step]
				require.NotNil(t, play, p.step)
				play(s)
				p.locked(func() { require.Empty(t, p.problems, p.step) })
			}
		})
	}
}

// playedStep is a step of a recording.
type playedStep struct {
	Step, Call, Session, Reason, Leader string
	Boundary                            string
	Epoch, Fence, Lease                 uint64
	Owned, Numbers                      [][2]uint64
	Leases, Fetched, Revoked            []uint64
	Grants, Adopt                       []playedGrant
	Says                                []string
	Lost, Ordered                       bool
}

type playedGrant struct {
	Lease, Epoch, From, To uint64
	Split                  uint32
	Node, Drive            string
}

// playedFragment names a fragment of an epoch, as a request to a node does.
type playedFragment struct{ epoch, number uint64 }

// numberSet is a set of mini-batches of an epoch.
type numberSet map[uint64]bool

func (s numberSet) add(pairs ...[2]uint64) {
	for _, p := range pairs {
		for n := p[0]; n < p[1]; n++ {
			s[n] = true
		}
	}
}

func (s numberSet) has(pairs ...[2]uint64) bool {
	for _, p := range pairs {
		for n := p[0]; n < p[1]; n++ {
			if !s[n] {
				return false
			}
		}
	}
	return true
}

// playedCall is a call of the launcher. It waits until answer or err is set.
type playedCall struct {
	method  string
	request any
	member  int
	answer  any
	err     error
}

func (c *playedCall) over() bool { return c.answer != nil || c.err != nil }

func (c *playedCall) numbers() (pairs [][2]uint64) {
	for _, r := range c.request.(*apiv1.AcknowledgeRequest).Numbers {
		pairs = append(pairs, [2]uint64{r.From, r.To})
	}
	return pairs
}

// player is a control plane of three members, a node, and a trainer, which do what a recording says.
type player struct {
	t       *testing.T
	step    string // It describes the step that is played.
	ordered bool
	members []*httptest.Server
	node    *httptest.Server
	cluster *cluster // It has the job's plan.
	client  *Client
	job     *Job
	stop    context.CancelFunc // It ends the loop of the trainer.

	mu       sync.Mutex
	changed  wait.Broadcast
	problems []string
	calls    []*playedCall
	mark     int // The calls since the last change of what the rank holds begin here.
	over     bool

	scripted      *apiv1.LeaseResponse // The answer to the next Lease call of scriptedEpoch.
	scriptedEpoch uint64
	answered      func() // It changes what the launcher may say once it has this answer.
	redirect      int    // The member that the next Lease call is sent to, or -1.
	loseLease     bool
	session       string
	former        string // The session before.
	underWay      int    // How many Lease calls of the former session may come late.
	epoch, fence  uint64
	adopts        bool // The leader asks for the leases.
	adopted       bool // A leader has asked for them.
	fenced        bool
	silent        bool
	owned         [][2]uint64
	granted       map[uint64]playedGrant
	gone          map[uint64]int // The leases that have ended, and how many calls that name each may come late.
	trained, told numberSet
	given         map[playedFragment]bool // The fragments that the node gives.
	failing       map[playedFragment]bool // The fragments that the node does not give.
	taken         map[playedFragment]bool // The fragments that the node gave.
	passed        map[tensor.Name]bool    // The mini-batches that the trainer has trained.
	released      map[uint64]string
	loop          *error // How the trainer's loop ended.
	token         *error // How the call for a token ended.
	left          *error // How the job was closed.
}

func newPlayer(t *testing.T, steps []playedStep) *player {
	p := &player{
		t: t, redirect: -1, fence: 1, granted: map[uint64]playedGrant{}, gone: map[uint64]int{}, trained: numberSet{},
		told: numberSet{}, given: map[playedFragment]bool{}, failing: map[playedFragment]bool{},
		taken: map[playedFragment]bool{}, passed: map[tensor.Name]bool{}, released: map[uint64]string{},
		ordered: slices.ContainsFunc(steps, func(s playedStep) bool { return s.Ordered }),
	}
	o := clusterOptions{rows: 80, batch: 10, split: 2, epochs: 3, shuffle: dataset.ShuffleNone.String()}
	if steps[0].Boundary == dataset.BoundaryNone.String() {
		o.across, o.groups = true, []int64{25, 25, 25, 5}
	}
	p.cluster = newCluster(t, o)
	p.cluster.spec.Order = map[bool]string{true: "deterministic", false: "fastest"}[p.ordered]
	var urls []string
	for i := range 3 {
		mux := http.NewServeMux()
		mux.Handle(apiv1connect.NewControlHandler(&playedMember{p: p, number: i}))
		p.members = append(p.members, httptest.NewServer(mux))
		urls = append(urls, p.members[i].URL)
	}
	p.node = httptest.NewServer(http.HandlerFunc(p.give))
	p.client = p.cluster.dial(t, urls...)
	t.Cleanup(func() { // before the client is closed
		p.end()
		if p.job != nil && p.left == nil {
			p.await("the end of the loop", func() bool { return p.loop != nil })
			_ = p.job.Close() // the incident is over
		}
		for _, s := range append(p.members, p.node) {
			s.CloseClientConnections()
			s.Close()
		}
	})
	return p
}

// end ends the incident: no call is answered any more.
func (p *player) end() {
	p.locked(func() { p.over = true })
	if p.stop != nil {
		p.stop()
	}
}

func (p *player) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	p.changed.Broadcast()
}

// await waits for something that the launcher must do.
func (p *player) await(what string, reached func() bool) {
	p.t.Helper()
	late := time.After(time.Minute)
	for {
		p.mu.Lock()
		ok, changed, problems := reached(), p.changed.Changed(), p.problems
		p.mu.Unlock()
		require.Empty(p.t, problems, p.step)
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			p.mu.Lock()
			defer p.mu.Unlock()
			var last []string
			for _, c := range p.calls[max(0, len(p.calls)-3):] {
				last = append(last, fmt.Sprintf("%s %v", c.method, c.request))
			}
			require.Fail(p.t, what+": it does not come", "%s; the last calls: %s", p.step, last)
		}
	}
}

// playedMember is a member of the control plane.
type playedMember struct {
	apiv1connect.UnimplementedControlHandler
	p      *player
	number int
}

func (m *playedMember) Attach(_ context.Context, r *apiv1.AttachRequest) (*apiv1.AttachResponse, error) {
	return serve[apiv1.AttachResponse](m, "Attach", r)
}

func (m *playedMember) Lease(_ context.Context, r *apiv1.LeaseRequest) (*apiv1.LeaseResponse, error) {
	return serve[apiv1.LeaseResponse](m, "Lease", r)
}

func (m *playedMember) Acknowledge(_ context.Context, r *apiv1.AcknowledgeRequest) (*apiv1.AcknowledgeResponse, error) {
	return serve[apiv1.AcknowledgeResponse](m, "Acknowledge", r)
}

func (m *playedMember) Release(_ context.Context, r *apiv1.ReleaseRequest) (*apiv1.ReleaseResponse, error) {
	return serve[apiv1.ReleaseResponse](m, "Release", r)
}

func (m *playedMember) Checkpoint(_ context.Context, r *apiv1.CheckpointRequest) (*apiv1.CheckpointResponse, error) {
	return serve[apiv1.CheckpointResponse](m, "Checkpoint", r)
}

var errPlayedLost = connect.NewError(connect.CodeUnavailable, errors.New("the answer is lost"))

// serve checks a call, and returns its answer when a step gives it.
func serve[T any](m *playedMember, method string, request any) (*T, error) {
	p, c := m.p, &playedCall{method: method, request: request, member: m.number}
	p.locked(func() {
		// One call of each other method is under way at a time: the launcher gave an earlier one up.
		if former := p.open(method); former != nil && method != "Lease" {
			former.err = errPlayedLost
		}
		p.calls = append(p.calls, c)
		p.check(c)
		p.answer(c)
	})
	for {
		p.mu.Lock()
		over, changed := c.over(), p.changed.Changed()
		if !over && p.over {
			c.err, over = errPlayedLost, true
		}
		p.mu.Unlock()
		if over {
			answer, _ := c.answer.(*T)
			return answer, c.err
		}
		<-changed
	}
}

func (p *player) problem(format string, values ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, values...))
}

// check checks what is forbidden at every call. p.mu is held.
func (p *player) check(c *playedCall) {
	if p.over || c.method == "Attach" {
		return
	}
	if p.silent && c.method != "Acknowledge" {
		p.problem("%s after the session was fenced off", c.method)
	}
	session := string(c.request.(interface{ GetSession() []byte }).GetSession())
	if c.method == "Lease" && session == p.former && p.underWay > 0 {
		p.underWay--
		return
	}
	if session != p.session {
		p.problem("%s of session %s, not %s", c.method, session, p.session)
	}
	switch r := c.request.(type) {
	case *apiv1.AcknowledgeRequest:
		if r.Epoch != p.epoch || !p.trained.has(c.numbers()...) {
			p.problem("acknowledges %v of epoch %d in epoch %d, and trained %v", c.numbers(), r.Epoch, p.epoch, p.trained)
		}
	case *apiv1.ReleaseRequest:
		for _, id := range r.Leases {
			if p.granted[id].Lease != id {
				p.problem("gives back lease %d, which was not granted", id)
			}
		}
	case *apiv1.LeaseRequest:
		for _, id := range r.Held {
			late, gone := p.gone[id]
			if p.granted[id].Lease != id || gone && late == 0 {
				p.problem("holds lease %d, which was not granted or has ended", id)
			}
			if gone {
				p.gone[id] = late - 1
			}
		}
		for _, id := range r.Fetched {
			if !slices.Contains(r.Held, id) {
				p.problem("has fetched lease %d, and does not hold it", id)
			}
		}
		if len(r.Adopt) > 0 && !p.adopted {
			p.problem("sends its leases to a leader that did not ask")
		}
		if r.Epoch != p.epoch && !(r.Epoch == p.epoch+1 && p.trained.has(p.owned...)) {
			p.problem("asks for leases of epoch %d in epoch %d", r.Epoch, p.epoch)
		}
	}
}

// answer answers a call that no step answers. p.mu is held.
func (p *player) answer(c *playedCall) {
	switch r := c.request.(type) {
	case *apiv1.ReleaseRequest:
		for _, id := range r.Leases {
			p.released[id] = r.Reason
			p.lose(id)
		}
		c.answer = &apiv1.ReleaseResponse{}
	case *apiv1.LeaseRequest:
		switch {
		case p.loseLease:
			c.err, p.loseLease = errPlayedLost, false
		case p.redirect >= 0:
			err := connect.NewError(connect.CodeFailedPrecondition, errors.New("this member does not lead"))
			if d, derr := connect.NewErrorDetail(&apiv1.NotLeader{LeaderUrl: p.members[p.redirect].URL}); derr == nil {
				err.AddDetail(d)
			}
			c.err, p.redirect = err, -1
		case p.scripted != nil && r.Epoch == p.scriptedEpoch:
			c.answer, p.scripted = p.scripted, nil
			p.answered() // The launcher may call again before the step goes on.
		default:
			p.adopts = p.adopts && len(r.Adopt) == 0
			c.answer = &apiv1.LeaseResponse{Fence: p.fence, Adopt: p.adopts}
		}
	}
}

// playedTicket is the ticket of every lease.
var playedTicket = []byte("a ticket")

// lose notes that a lease has ended. Two calls that name it may be under way. p.mu is held.
func (p *player) lose(lease uint64) {
	if _, gone := p.gone[lease]; !gone {
		p.gone[lease] = 2
	}
}

// give is the node.
func (p *player) give(w http.ResponseWriter, r *http.Request) {
	epoch, _ := strconv.ParseUint(r.URL.Query().Get("epoch"), 10, 64)
	number, _ := strconv.ParseUint(r.URL.Query().Get("number"), 10, 64)
	name := playedFragment{epoch, number}
	if r.Header.Get(apiv1.TicketHeader) != apiv1.EncodeTicket(playedTicket) {
		p.locked(func() { p.problem("asks for %v without the ticket", name) })
	}
	for {
		p.mu.Lock()
		given, failing, over, changed := p.given[name], p.failing[name], p.over, p.changed.Changed()
		p.mu.Unlock()
		switch {
		case given:
			fragment, err := p.cluster.makeFragment(epoch, number)
			if err != nil {
				panic(err)
			}
			frame, err := tensor.AppendFrame(nil, fragment)
			if err != nil {
				panic(err)
			}
			send(w, frame)
			p.locked(func() { p.taken[name] = true })
			return
		case failing || over:
			panic(http.ErrAbortHandler)
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// plays returns what each step does.
func (p *player) plays() map[string]func(playedStep) {
	nothing := func(playedStep) {}
	return map[string]func(playedStep){
		"attached": p.attached, "deliver": nothing, "leased": p.leased, "lease": p.lease, "brings": p.brings,
		"fails": p.fails, "trained": p.train, "acknowledge": p.acknowledge, "acknowledged": p.acknowledged,
		"release": p.release, "lost": p.lost, "redirected": p.redirected, "refused": p.refused,
		"checkpoint": p.checkpoint, "token": p.seal, "sealed": p.sealed, "unsealed": p.unsealed, "next": nothing,
		"entered": p.entered, "through": p.through, "end": p.endLoop, "leave": p.leave, "left": p.hasLeft,
		"fenced": p.isFenced,
	}
}

// open returns the first call of a method that waits for its answer. p.mu is held.
func (p *player) open(method string) *playedCall {
	for _, c := range p.calls {
		if c.method == method && !c.over() {
			return c
		}
	}
	return nil
}

// awaitTurnover waits for something that the launcher does after its acknowledgements, and answers these meanwhile.
func (p *player) awaitTurnover(what string, reached func() bool) {
	p.t.Helper()
	p.await(what, func() bool {
		ok := reached()
		if !ok {
			p.answerAcknowledgement()
		}
		return ok
	})
}

// awaitCall waits for a call.
func (p *player) awaitCall(method string) (c *playedCall) {
	p.t.Helper()
	p.await(method, func() bool {
		c = p.open(method)
		return c != nil
	})
	return c
}

func (p *player) attached(s playedStep) {
	if p.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		p.stop = cancel
		go p.run(ctx)
	}
	var c *playedCall
	p.awaitTurnover("Attach", func() bool {
		c = p.open("Attach")
		return c != nil
	})
	var ranges []dataset.Range
	for _, n := range s.Numbers {
		ranges = append(ranges, dataset.Range{From: n[0], To: n[1]})
	}
	token := dataset.Token{Job: p.cluster.digest, Epoch: s.Epoch, Ranges: ranges}
	if len(ranges) > 0 && ranges[0].From == 0 {
		token.Mark, token.Ranges = ranges[0].To, ranges[1:]
	}
	raw, err := token.MarshalBinary()
	require.NoError(p.t, err)
	schema, err := json.Marshal(testSchema)
	require.NoError(p.t, err)
	manifest, err := p.cluster.man.MarshalJSON()
	require.NoError(p.t, err)
	answer := &apiv1.AttachResponse{
		Job: p.cluster.status(), Session: []byte(s.Session), TensorSchema: schema, Manifest: manifest, Epoch: s.Epoch,
		Token: raw,
	}
	for _, n := range s.Owned {
		answer.Owned = append(answer.Owned, &apiv1.NumberRange{From: n[0], To: n[1]})
	}
	p.locked(func() {
		if s.Epoch != p.epoch {
			p.trained, p.told = numberSet{}, numberSet{}
		}
		p.former, p.underWay = p.session, 2
		p.session, p.epoch, p.owned = s.Session, s.Epoch, s.Owned
		for id := range p.granted {
			p.lose(id)
		}
		p.trained.add(s.Numbers...)
		p.told.add(s.Numbers...)
		for _, c := range p.calls {
			if c.method == "Acknowledge" && !c.over() {
				c.err = errPlayedLost // it is of the former session
			}
		}
		c.answer = answer
	})
}

func (p *player) leased(s playedStep) {
	answer := &apiv1.LeaseResponse{Fence: s.Fence, Revoked: s.Revoked}
	says := func(word string) bool { return slices.Contains(s.Says, word) }
	answer.Adopt, answer.EpochDone, answer.JobDone = says("adopt"), says("epochDone"), says("jobDone")
	answer.UnknownSession = says("unknownSession")
	for _, g := range s.Grants {
		answer.Grants = append(answer.Grants, &apiv1.Grant{
			Lease: g.Lease, Epoch: g.Epoch, Split: g.Split, From: g.From, To: g.To, Node: g.Node, Drive: g.Drive,
			Urls: []string{p.node.URL}, Ticket: playedTicket,
		})
	}
	p.locked(func() {
		for _, g := range s.Grants {
			p.each(g, func(name playedFragment) { delete(p.failing, name) })
			if p.granted[g.Lease].Lease != g.Lease {
				p.granted[g.Lease] = g
			}
		}
		p.scripted, p.scriptedEpoch = answer, s.Epoch
		p.answered = func() {
			p.mark = len(p.calls)
			if s.Fence < p.fence {
				return
			}
			if s.Fence > p.fence {
				p.fence, p.told = s.Fence, numberSet{}
			}
			p.adopts, p.fenced = answer.Adopt, answer.UnknownSession
			p.adopted = p.adopted || p.adopts
			for _, id := range s.Revoked {
				p.lose(id)
			}
		}
	})
	await := p.await
	if s.Epoch > p.epoch { // p.epoch changes between steps only.
		await = p.awaitTurnover
	}
	await("a Lease call", func() bool { return p.scripted == nil })
}

// each calls do with every fragment of a lease.
func (p *player) each(g playedGrant, do func(playedFragment)) {
	for n := g.From; n < g.To; n++ {
		do(playedFragment{g.Epoch, n})
	}
}

// miniBatches returns the numbers of the mini-batches that have fragments in a lease.
func (p *player) miniBatches(g playedGrant) [2]uint64 {
	var ends [2]uint64
	for i, n := range []uint64{g.From, g.To - 1} {
		f, err := p.cluster.plan[g.Epoch].Fragment(n)
		require.NoError(p.t, err)
		ends[i] = f.MiniBatch + uint64(i)
	}
	return ends
}

func (p *player) lease(s playedStep) {
	if p.fenced || p.trained.has(p.owned...) {
		return
	}
	// left returns the leases that the ledger does not know as delivered.
	left := func(list []uint64) (ids []uint64) {
		for _, id := range list {
			if !p.told.has(p.miniBatches(p.granted[id])) {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		return ids
	}
	p.await("a Lease call that says this", func() bool {
		return slices.ContainsFunc(p.calls[p.mark:], func(c *playedCall) bool {
			r, ok := c.request.(*apiv1.LeaseRequest)
			if !ok || r.Epoch != s.Epoch {
				return false
			}
			var adopt []playedGrant
			for _, h := range r.Adopt {
				adopt = append(adopt, playedGrant{h.Lease, h.Epoch, h.From, h.To, h.Split, h.Node, h.Drive})
			}
			return slices.Equal(left(r.Held), left(s.Leases)) && slices.Equal(left(r.Fetched), left(s.Fetched)) &&
				(len(s.Adopt) == 0 || slices.Equal(adopt, s.Adopt))
		})
	})
}

func (p *player) brings(s playedStep) {
	g := p.granted[s.Lease]
	p.each(g, func(name playedFragment) {
		p.locked(func() { p.given[name] = true })
		p.await("a request for a fragment", func() bool { return p.taken[name] })
	})
	p.await("a Lease call that names the lease as fetched", func() bool {
		return slices.ContainsFunc(p.calls[p.mark:], func(c *playedCall) bool {
			r, ok := c.request.(*apiv1.LeaseRequest)
			return ok && slices.Contains(r.Fetched, s.Lease)
		})
	})
}

func (p *player) fails(s playedStep) {
	p.locked(func() { p.each(p.granted[s.Lease], func(name playedFragment) { p.failing[name] = true }) })
}

func (p *player) train(s playedStep) {
	for _, n := range s.Numbers {
		for number := n[0]; number < n[1]; number++ {
			name := tensor.Name{Job: p.cluster.digest, Epoch: p.epoch, Number: number}
			p.locked(func() { p.trained[number] = true })
			p.await("the trainer", func() bool { return p.passed[name] })
		}
	}
	p.locked(func() { p.mark = len(p.calls) })
}

func (p *player) acknowledge(s playedStep) {
	if p.fenced {
		return
	}
	p.await("acknowledgements", func() bool {
		said := numberSet{}
		for n := range p.told {
			said[n] = true
		}
		for _, c := range p.calls {
			if c.method == "Acknowledge" && !c.over() {
				said.add(c.numbers()...)
			}
		}
		if said.has(s.Numbers...) {
			return true
		}
		p.answerAcknowledgement()
		return false
	})
}

// answerAcknowledgement answers the Acknowledge call under way. p.mu is held.
func (p *player) answerAcknowledgement() {
	if c := p.open("Acknowledge"); c != nil {
		p.told.add(c.numbers()...)
		c.answer = &apiv1.AcknowledgeResponse{Fence: p.fence}
		p.changed.Broadcast()
	}
}

func (p *player) acknowledged(playedStep) {
	p.locked(func() {
		p.answerAcknowledgement()
		p.mark = len(p.calls)
	})
}

func (p *player) release(s playedStep) {
	p.await("Release", func() bool {
		for _, id := range s.Leases {
			if reason, _, _ := strings.Cut(p.released[id], ":"); reason != s.Reason {
				return false
			}
		}
		return true
	})
}

func (p *player) lost(s playedStep) {
	if s.Call == "Lease" {
		p.locked(func() { p.loseLease = true })
		p.await("a Lease call", func() bool { return !p.loseLease })
		return
	}
	c := p.awaitCall(s.Call)
	p.locked(func() { c.err = errPlayedLost })
}

func (p *player) redirected(s playedStep) {
	_, number, _ := strings.Cut(s.Leader, "-")
	to, err := strconv.Atoi(number)
	require.NoError(p.t, err)
	p.locked(func() { p.redirect = to })
	begun := 0
	p.await("a Lease call", func() bool {
		begun = len(p.calls)
		return p.redirect < 0
	})
	p.await("a Lease call of the named member", func() bool {
		return slices.ContainsFunc(p.calls[begun:], func(c *playedCall) bool { return c.method == "Lease" && c.member == to })
	})
}

func (p *player) refused(s playedStep) {
	p.locked(func() {
		if c := p.open(s.Call); c != nil {
			c.err = connect.NewError(connect.CodeAborted, errors.New("ledger: the session was fenced off"))
		}
	})
}

func (p *player) checkpoint(playedStep) {
	p.locked(func() { p.token = nil })
	go func() {
		_, err := p.job.Checkpoint(context.Background())
		p.locked(func() { p.token = &err })
	}()
}

func (p *player) seal(s playedStep) {
	c := p.awaitCall("Checkpoint")
	counted := numberSet{}
	counted.add(s.Numbers...)
	token := dataset.Token{Job: p.cluster.digest, Epoch: s.Epoch}
	for _, n := range s.Numbers {
		if n[0] == 0 {
			token.Mark = n[1]
		} else {
			token.Ranges = append(token.Ranges, dataset.Range{From: n[0], To: n[1]})
		}
	}
	p.locked(func() {
		for n := range p.told {
			if !counted[n] {
				delete(p.told, n)
			}
		}
		c.answer = &apiv1.CheckpointResponse{Token: p.cluster.seal(token)}
	})
}

func (p *player) sealed(playedStep) {
	p.await("the token", func() bool { return p.token != nil })
	require.NoError(p.t, *p.token, p.step)
}

func (p *player) unsealed(playedStep) {
	p.await("the error of the token", func() bool { return p.token != nil })
	require.ErrorIs(p.t, *p.token, dataset.ErrToken, p.step)
}

func (p *player) entered(s playedStep) {
	p.await("a Lease call of the epoch", func() bool {
		return slices.ContainsFunc(p.calls, func(c *playedCall) bool {
			r, ok := c.request.(*apiv1.LeaseRequest)
			return ok && r.Epoch == s.Epoch && string(r.Session) == p.session
		})
	})
}

func (p *player) through(playedStep) {
	p.await("the end of the loop", func() bool { return p.loop != nil })
	require.NoError(p.t, *p.loop, p.step)
}

// endLoop ends the trainer's loop, unless the epoch is over, after which the trainer asks for the next one.
func (p *player) endLoop(playedStep) {
	if !p.trained.has(p.owned...) {
		p.stop()
	}
}

func (p *player) leave(playedStep) {
	p.locked(func() { p.silent = p.silent || p.fenced })
	go func() {
		for ended := false; !ended; {
			p.mu.Lock()
			changed := p.changed.Changed()
			ended = p.loop != nil
			p.mu.Unlock()
			if !ended {
				<-changed
			}
		}
		err := p.job.Close()
		p.locked(func() { p.left = &err })
	}()
}

func (p *player) hasLeft(s playedStep) {
	if s.Lost {
		p.locked(func() { p.over = true })
	}
	p.await("the end of the job", func() bool { return p.left != nil })
	if s.Lost {
		require.ErrorContains(p.t, *p.left, "may not be durable", p.step)
	} else {
		require.NoError(p.t, *p.left, p.step)
	}
}

func (p *player) isFenced(playedStep) {
	p.locked(func() { p.trained.add(p.owned...) }) // so that the trainer asks for another mini-batch
	p.await("the end of the loop", func() bool { return p.loop != nil })
	require.ErrorIs(p.t, *p.loop, ErrFenced, p.step)
	p.locked(func() { p.silent = true })
}

// run is the trainer. It trains a mini-batch when a step says so.
func (p *player) run(ctx context.Context) {
	var err error
	defer func() { p.locked(func() { p.loop = &err }) }()
	job, err := p.client.Attach(context.Background(), "job", AttachOptions{Pieces: 2})
	if err != nil {
		return
	}
	p.locked(func() { p.job = job })
	for mb, failed := range job.MiniBatches(ctx) {
		if err = failed; err != nil {
			return
		}
		for trained := false; !trained; {
			p.mu.Lock()
			trained = mb.Name.Epoch == p.epoch && p.trained[mb.Name.Number]
			changed := p.changed.Changed()
			p.mu.Unlock()
			if !trained {
				select {
				case <-changed:
				case <-ctx.Done():
					return
				}
			}
		}
		if err = job.Acknowledge(mb.Name); err != nil {
			return
		}
		p.locked(func() { p.passed[mb.Name] = true })
	}
}

package control

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// TestALauncherOverABadLine: answers are lost, callers give up, leases go back, leaders' calls come twice, and no
// lease expires during the test. Every mini-batch is still granted, and the job ends. MILLRACE_SEED repeats a run's
// choices.
func TestALauncherOverABadLine(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if s := os.Getenv("MILLRACE_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("MILLRACE_SEED=%d", seed)
	o := testOptions(t)
	o.LeaseTTL = time.Hour
	s, c := start(t, o)
	for _, name := range []string{"a", "b"} {
		n := newNode(t, name, map[string][]*apiv1.Partition{"d": {partition(t, "p0", 300), partition(t, "p1", 250)}})
		n.beats(t, c)
	}
	await(t, c, "a", "b")
	for round := range 6 {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		order := []string{"fastest", "deterministic"}[rng.IntN(2)]
		st := submitRunning(t, c, &apiv1.JobSpec{Name: fmt.Sprint("job-", round), Order: order,
			Plan:      &apiv1.PlanOptions{SplitBatches: 1 + rng.Int64N(4), Seed: uint64(round)},
			MaxDrives: int32(rng.IntN(3))})
		l := &lineRank{s: s, rng: rng, id: st.Id, held: map[uint64]*apiv1.Grant{}, acknowledged: map[uint64]bool{}}
		r, err := s.Attach(patient(t), &apiv1.AttachRequest{Id: st.Id})
		require.NoError(t, err)
		l.session = r.Session
		for range 60 {
			require.NoError(t, l.step(t.Context(), true))
		}
		for range 400 {
			if len(l.acknowledged) == 55 {
				break
			}
			require.NoError(t, l.step(t.Context(), false))
		}
		require.Len(t, l.acknowledged, 55, "round %d: something is nobody's", round)
		until(t, c, st.Id, "done")
		require.Zero(t, leased(s), "round %d", round)
	}
}

// lineRank is a rank that loses the answers of its calls.
type lineRank struct {
	s            *Server
	rng          *rand.Rand
	id           string
	session      []byte
	held         map[uint64]*apiv1.Grant
	acknowledged map[uint64]bool
}

// step makes one call. On a bad line its answer may be lost, and the caller may have gone before it comes.
func (l *lineRank) step(ctx context.Context, bad bool) error {
	lost := bad && l.rng.IntN(3) == 0
	var one *apiv1.Grant
	for _, g := range l.held { // any
		one = g
		break
	}
	switch what := l.rng.IntN(6); {
	case what == 0 && one != nil && bad: // the node failed, or the iteration was broken off
		delete(l.held, one.Lease)
		_, err := l.s.Release(ctx, &apiv1.ReleaseRequest{Id: l.id, Session: l.session, Leases: []uint64{one.Lease},
			Reason: []string{"stop", "node: it failed"}[l.rng.IntN(2)]})
		return err
	case what <= 3 && one != nil:
		_, err := l.s.Acknowledge(ctx, &apiv1.AcknowledgeRequest{Id: l.id, Session: l.session,
			Numbers: []*apiv1.NumberRange{{From: one.From, To: one.To}}})
		if err != nil {
			return err
		}
		for n := one.From; n < one.To; n++ {
			l.acknowledged[n] = true
		}
		if !lost || l.rng.IntN(2) == 0 { // otherwise the lease is held, and acknowledged again
			delete(l.held, one.Lease)
		}
		return nil
	}
	req := &apiv1.LeaseRequest{Id: l.id, Session: l.session, Want: int32(l.rng.IntN(4)), WaitSeconds: 0.02}
	for id := range l.held {
		req.Held = append(req.Held, id)
	}
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	if lost && l.rng.IntN(2) == 0 {
		if l.rng.IntN(2) == 0 {
			cancel()
		} else {
			time.AfterFunc(time.Duration(l.rng.IntN(20))*time.Millisecond, cancel)
		}
	}
	r, err := l.s.Lease(calling, req)
	switch {
	case err != nil && calling.Err() != nil:
		return nil
	case err != nil:
		return err
	case r.UnknownSession:
		return errors.New("the session is unknown")
	case lost:
		return nil
	}
	for _, id := range r.Revoked {
		delete(l.held, id)
	}
	for _, g := range r.Grants {
		l.held[g.Lease] = g
	}
	return nil
}

package protocol

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEveryAcknowledgementBecomesDurable delivers an epoch while answers are lost, leaders change, leases are revoked,
// and pieces fail, in a random order. In the end the ledger knows every mini-batch, and the rank holds no lease.
func TestEveryAcknowledgementBecomesDurable(t *testing.T) {
	for _, boundary := range []string{"partition", "none"} {
		t.Run(boundary, func(t *testing.T) { deliverAtRandom(t, boundary) })
	}
}

func deliverAtRandom(t *testing.T, boundary string) {
	for seed := range uint64(200) {
		r := &randomDelivery{scripted: newScripted(t), rng: rand.New(rand.NewPCG(seed, 1)), fence: 1,
			running: map[uint64]bool{}}
		r.do(strings.Fields("attach s1 0 boundary=" + boundary))
		r.do(strings.Fields("deliver"))
		r.settle()
		for events := 0; r.acknowledged.Count() < r.acknowledged.Total(); events++ {
			require.Less(t, events, 10_000, "seed %d: %s", seed, r.out.String())
			r.event()
		}
		for r.running = map[uint64]bool{}; len(r.machine.delivery.running) > 0; {
			for _, id := range sortedKeys(r.machine.delivery.running) {
				r.ended(id, Interrupted, "")
			}
		}
		r.do([]string{"end"})
		r.settle()
		for events := 0; len(r.waits) > 0; events++ {
			require.Less(t, events, 5000, "seed %d: %s", seed, r.out.String()) // milliseconds: the end has 3 s
			r.answerCall()
			r.elapse(r.now.Add(time.Millisecond))
		}
		require.Contains(t, r.out.String(), "the delivery has ended: <nil>", "seed %d", seed)
		require.Zero(t, r.machine.RowsLeft(), "seed %d: %s", seed, r.out.String())
	}
}

// randomDelivery is a launcher in miniature whose calls and pieces end at random.
type randomDelivery struct {
	*scripted
	rng     *rand.Rand
	fence   int
	lease   uint64
	running map[uint64]bool
}

// event does one thing at random.
func (r *randomDelivery) event() {
	switch r.rng.IntN(8) {
	case 0:
		r.elapse(r.now.Add(time.Duration(r.rng.IntN(200)) * time.Millisecond))
	case 1, 2, 3:
		r.answerCall()
	case 4, 5:
		if id, ok, err := r.machine.StartPiece(); ok {
			r.running[id] = true
		} else {
			require.NoError(r.t, err)
		}
	case 6:
		for _, id := range slices.Sorted(maps.Keys(r.running)) {
			if r.rng.IntN(2) == 0 {
				continue
			}
			delete(r.running, id)
			switch {
			case r.cancelled[id]:
				r.ended(id, Interrupted, "")
			case r.rng.IntN(3) == 0:
				r.ended(id, NodeFailed, "it hangs")
			default:
				r.do([]string{"brings", fmt.Sprint(id)})
			}
		}
	case 7:
		for n := range r.acknowledged.Total() {
			if r.isWhole(n) && !r.acknowledged.Acked(n) && r.rng.IntN(2) == 0 {
				r.do([]string{"step", fmt.Sprintf("%d-%d", n, n+1)})
			}
		}
	}
	r.settle()
}

// answerCall answers a call under way, or loses its answer.
func (r *randomDelivery) answerCall() {
	var under []string
	for _, name := range slices.Sorted(maps.Keys(r.calls)) {
		if r.calls[name].again.IsZero() {
			under = append(under, name)
		}
	}
	if len(under) == 0 {
		return
	}
	name := under[r.rng.IntN(len(under))]
	if r.rng.IntN(10) == 0 {
		r.fence++
	}
	words := []string{"answer", name, fmt.Sprintf("fence=%d", r.fence)}
	switch {
	case r.rng.IntN(4) == 0:
		words = []string{"fail", name, "other", "lost"}
	case name == "ask" && r.machine.delivery.ending == nil:
		split, err := r.machine.epoch.Plan.Split(r.rng.IntN(4))
		require.NoError(r.t, err)
		if next, ok := r.came.Pending(split.FirstFragment); ok && next < split.End() {
			r.lease++
			words = append(words, fmt.Sprintf("grants=%d:%d-%d@n0", r.lease, next, split.End()))
		}
	case name == "report" && r.rng.IntN(5) == 0:
		if held := sortedKeys(r.machine.delivery.held); len(held) > 0 && !r.machine.delivery.held[held[0]].fetched {
			words = append(words, fmt.Sprintf("revoked=%d", held[0]))
		}
	}
	r.do(words)
	r.settle()
}

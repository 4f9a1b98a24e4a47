package ledger

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/statediagram"
	"github.com/millrace/millrace/internal/transition"
	"github.com/millrace/millrace/sdk/dataset"
)

// The states of a piece in one rank's share.
const (
	pieceOwed      = "owed"      // no lease exists for the piece, and not all of the piece is delivered
	pieceLeased    = "leased"    // a rank has a lease, and a drive works for it
	pieceFetched   = "fetched"   // the rank has every mini-batch, and no drive works for it any more
	pieceDelivered = "delivered" // every mini-batch is acknowledged
)

// leaseWorld is a ledger with one job of one rank, one split of two mini-batches, and one drive that holds it.
type leaseWorld struct {
	t       *testing.T
	ledger  *Ledger
	now     time.Time
	session Session
}

var leaseDrive = Drive{ID: DriveID{Node: "n0", Name: "d0"}, Streams: 1, Partitions: []string{"p"}}

func newLeaseWorld(t *testing.T) *leaseWorld {
	w := &leaseWorld{t: t, ledger: New(Config{Fence: 1}), now: time.Unix(1_700_000_000, 0)}
	m, err := dataset.NewManifest([]dataset.Partition{{Name: "p", Bytes: 1, Rows: 20, RowGroups: []int64{20}}})
	require.NoError(t, err)
	plan, err := dataset.NewPlan(m, dataset.Options{Batch: 10})
	require.NoError(t, err)
	require.NoError(t, w.ledger.AddJob(Job{ID: "x"}))
	require.NoError(t, w.ledger.PutDrive(leaseDrive, w.now))
	require.NoError(t, w.ledger.Begin(Epoch{Job: "x", Plan: plan, Partitions: []string{"p"}}, w.now))
	w.attach()
	return w
}

func (w *leaseWorld) attach() {
	a, err := w.ledger.Attach("x", 0, nil, w.now)
	require.NoError(w.t, err)
	w.session = a.Session
}

// lease returns the granted lease. A lease with id 0 was never granted.
func (w *leaseWorld) lease() (Lease, bool) {
	leases := leasesOf(w.ledger, "x")
	require.LessOrEqual(w.t, len(leases), 1)
	if len(leases) == 0 {
		return Lease{}, false
	}
	return leases[0].Lease, true
}

// leaseEvents are the events of a piece.
var leaseEvents = map[string]func(*leaseWorld) error{
	"the rank asks for work": func(w *leaseWorld) error { return w.ledger.Want("x", w.session, 0, 1, w.now) },
	"the rank has fetched all": func(w *leaseWorld) error {
		le, _ := w.lease()
		_, err := w.ledger.Hold("x", w.session, Progress{Held: []uint64{le.ID}, Fetched: []uint64{le.ID}}, w.now)
		return err
	},
	"all is acknowledged": func(w *leaseWorld) error {
		return w.ledger.Acknowledge("x", w.session, 0, []dataset.Range{{From: 0, To: 2}}, w.now)
	},
	"a part is acknowledged": func(w *leaseWorld) error {
		return w.ledger.Acknowledge("x", w.session, 0, []dataset.Range{{From: 0, To: 1}}, w.now)
	},
	"the rank gives it back": func(w *leaseWorld) error {
		le, _ := w.lease()
		return w.ledger.Release("x", w.session, []uint64{le.ID}, Stopped, "", w.now)
	},
	"the deadline passes": func(w *leaseWorld) error {
		w.now = w.now.Add(DefaultLeaseTTL + time.Second)
		w.ledger.Tick(w.now)
		return nil
	},
	"the drive is lost": func(w *leaseWorld) error {
		if err := w.ledger.LoseDrive(leaseDrive.ID, "killed", w.now); err != nil {
			return err
		}
		return w.ledger.PutDrive(leaseDrive, w.now) // the drive comes back, so that the piece can be made again
	},
	"the launcher is gone":         func(w *leaseWorld) error { return w.ledger.Detach("x", 0, "killed", w.now) },
	"another attaches as the rank": func(w *leaseWorld) error { w.attach(); return nil },
}

// state returns the piece's state according to the ledger.
func (w *leaseWorld) state() string {
	if le, out := w.lease(); out {
		if le.Fetched {
			return pieceFetched
		}
		return pieceLeased
	}
	_, delivered, err := w.ledger.Progress("x", 0)
	require.NoError(w.t, err)
	if delivered == 2 {
		return pieceDelivered
	}
	return pieceOwed
}

// TestStatesOfALease tries every event in every state that a piece reaches, each time on a new ledger that was
// brought into the state. It compares the observed transitions with the diagram in docs/architecture.md. The diagram
// leaves out events that are refused or that change nothing.
func TestStatesOfALease(t *testing.T) {
	events := make([]string, 0, len(leaseEvents))
	for e := range leaseEvents {
		events = append(events, e)
	}
	slices.Sort(events)
	seen := transition.Table[string, string]{}
	ways := map[string][]string{pieceOwed: nil} // the events that lead to a state
	pending := []string{pieceOwed}
	for len(pending) > 0 {
		from := pending[0]
		pending = pending[1:]
		seen[from] = map[string]string{}
		for _, event := range events {
			w := newLeaseWorld(t)
			for _, before := range ways[from] {
				require.NoError(t, leaseEvents[before](w), "%s: %s", strings.Join(ways[from], ", "), before)
			}
			require.Equal(t, from, w.state(), strings.Join(ways[from], ", "))
			if err := leaseEvents[event](w); err != nil {
				require.Equal(t, from, w.state(), "%s was refused in state %s and changed it", event, from)
				continue
			}
			to := w.state()
			if to == from {
				continue
			}
			seen[from][event] = to
			if _, known := ways[to]; !known {
				ways[to] = append(slices.Clone(ways[from]), event)
				pending = append(pending, to)
			}
		}
	}
	statediagram.Picture[string, string]{
		File: "../../docs/architecture.md", Name: "a lease", Table: seen, Start: []string{pieceOwed},
	}.Document(t)
}

package ticket

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
)

// Bounds of a Verifier's memory.
const (
	maxKeys     = 4       // of the latest leaders
	maxKnown    = 1 << 15 // tickets; about 30 MB
	maxReturned = 1 << 16 // leases
	maxRanks    = 1 << 16
	// keepReturned is longer than a ticket lives.
	keepReturned = time.Hour
)

// Verifier checks tickets on a node.
type Verifier struct {
	node, incarnation string
	now               func() time.Time

	mu       sync.RWMutex
	keys     map[uint64]ed25519.PublicKey
	required bool                     // the leader demands tickets
	learned  bool                     // a leader has answered
	clock    float64                  // the leader's, Unix time
	clockAt  time.Time                // when clock was read
	known    map[string]*apiv1.Ticket // by the header that encodes what was verified, and nothing else
	returned map[uint64]time.Time     // leases, and since when
	ranks    map[rank]session         // the latest of each
}

// rank names a rank of a job.
type rank struct {
	job    string
	number uint32
}

// session orders a rank's sessions.
type session struct{ fence, seq uint64 }

// before reports whether a rank had session s before session o.
func (s session) before(o session) bool {
	return s.fence < o.fence || s.fence == o.fence && s.seq < o.seq
}

// NewVerifier makes a Verifier for one run of a node. now is time.Now, or a test's clock.
func NewVerifier(node, incarnation string, now func() time.Time) *Verifier {
	return &Verifier{
		node: node, incarnation: incarnation, now: now, keys: map[uint64]ed25519.PublicKey{},
		known:    map[string]*apiv1.Ticket{},
		returned: map[uint64]time.Time{}, ranks: map[rank]session{},
	}
}

// Learn learns from the leader's answer to a heartbeat. An older control plane, which signs nothing, demands no
// tickets.
func (v *Verifier) Learn(m *apiv1.HeartbeatResponse) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.learned, v.required = true, m.GetTicketsRequired()
	now := v.now()
	v.clock, v.clockAt = m.GetClockSeconds(), now
	if k := m.GetTicketKey(); len(k.GetPublicKey()) == ed25519.PublicKeySize {
		v.keys[k.Id] = ed25519.PublicKey(bytes.Clone(k.PublicKey))
		for len(v.keys) > maxKeys {
			oldest := uint64(math.MaxUint64)
			for id := range v.keys {
				oldest = min(oldest, id)
			}
			delete(v.keys, oldest)
		}
	}
	for _, id := range m.GetReturned() {
		v.returned[id] = now
	}
	if len(v.returned) > maxReturned || len(v.known) > maxKnown/2 {
		v.sweep(now)
	}
}

// sweep forgets entries that are no longer needed. v.mu is held.
func (v *Verifier) sweep(now time.Time) {
	for id, since := range v.returned {
		if now.Sub(since) > keepReturned {
			delete(v.returned, id)
		}
	}
	for id := range v.returned {
		if len(v.returned) <= maxReturned {
			break
		}
		delete(v.returned, id)
	}
	clock := v.leaderClock(now)
	for text, t := range v.known {
		if _, gone := v.returned[t.Lease]; gone || clock > t.ExpiresSeconds {
			delete(v.known, text)
		}
	}
	if len(v.known) >= maxKnown {
		clear(v.known) // they are verified again
	}
}

// leaderClock returns the leader's clock now. v.mu is held.
func (v *Verifier) leaderClock(now time.Time) float64 {
	return v.clock + now.Sub(v.clockAt).Seconds()
}

// Ask is the fragment that a request asks for.
type Ask struct {
	Job    [32]byte
	Epoch  uint64
	Drive  string
	Number uint64
}

// Check returns the ticket that a header shows if the ticket covers the request. peer is the identity of the
// connection's certificate, or the zero value if there is no certificate. If the verifier demands no ticket and the
// header shows none, Check returns nil. The error wraps ErrNone, ErrVoid or ErrKey.
func (v *Verifier) Check(header string, peer identity.Identity, ask *Ask) (*apiv1.Ticket, error) {
	v.mu.RLock()
	t := v.known[header]
	learned, required := v.learned, v.required
	v.mu.RUnlock()
	switch {
	case !learned:
		return nil, fmt.Errorf("%w: this node has not reached the control plane since it was started", ErrKey)
	case header == "" && !required:
		return nil, nil
	case header == "":
		return nil, fmt.Errorf("%w: the request has no %s header: send the one that came with the lease; a launcher "+
			"that does not know of tickets is older than this node", ErrNone, apiv1.TicketHeader)
	case t == nil:
		var err error
		if t, err = v.verify(header); err != nil {
			return nil, err
		}
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	_, returned := v.returned[t.Lease]
	switch {
	case t.Node != v.node || t.Incarnation != v.incarnation:
		return nil, v.void(t, "it is for node %s as it was started before, or for another node; this is %s", t.Node,
			v.node)
	case returned:
		return nil, v.void(t, "the lease has come back")
	case (session{t.SessionFence, t.SessionSeq}).before(v.ranks[rank{t.Job, t.Rank}]):
		return nil, v.void(t, "rank %d of job %s has another launcher by now", t.Rank, t.Job)
	case v.leaderClock(v.now()) > t.ExpiresSeconds:
		return nil, v.void(t, "it has expired")
	case !isHolder(t.Holder, peer):
		return nil, v.void(t, "it is %s's, and %s shows it", t.Holder, peer)
	case !bytes.Equal(t.Digest, ask.Job[:]) || t.Epoch != ask.Epoch || t.Drive != ask.Drive || ask.Number < t.From ||
		ask.Number >= t.To:
		return nil, v.void(t, "it is for fragments [%d, %d) of epoch %d of job %.12x on drive %s; asked for is %d "+
			"of epoch %d of job %.12x on drive %s",
			t.From, t.To, t.Epoch, t.Digest, t.Drive, ask.Number, ask.Epoch, ask.Job, ask.Drive)
	}
	return t, nil
}

// void makes the error that refuses a ticket.
func (v *Verifier) void(t *apiv1.Ticket, why string, args ...any) error {
	return fmt.Errorf("%w: lease %d: %s", ErrVoid, t.Lease, fmt.Sprintf(why, args...))
}

// isHolder reports whether the peer is the holder of a ticket. If a connection shows no certificate, as over a unix
// socket, every peer that has the ticket is its holder.
func isHolder(holder string, peer identity.Identity) bool {
	if holder == "" || peer == (identity.Identity{}) {
		return true
	}
	role, name, _ := strings.Cut(holder, "/")
	return role == string(peer.Role) && name == peer.Name
}

// verify checks a ticket's signature, and remembers the ticket.
func (v *Verifier) verify(header string) (*apiv1.Ticket, error) {
	t, raw, signature, err := decode(header)
	if err != nil {
		return nil, err
	}
	v.mu.RLock()
	key, ok := v.keys[t.Key]
	latest := uint64(0)
	for id := range v.keys {
		latest = max(latest, id)
	}
	v.mu.RUnlock()
	switch {
	case !ok && t.Key > latest:
		return nil, fmt.Errorf("%w: key %d; the latest is %d", ErrKey, t.Key, latest)
	case !ok:
		return nil, fmt.Errorf("%w: key %d is not a leader's, or is of one long gone", ErrNone, t.Key)
	case !ed25519.Verify(key, signedBytes(raw), signature):
		return nil, fmt.Errorf("%w: no leader of this control plane has signed it", ErrNone)
	}
	// Other headers say the same: with unknown fields, or with a field twice. They are not remembered, so that one ticket
	// takes the place of one.
	canonical, err := encode(raw, signature)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	if len(v.known) >= maxKnown {
		v.sweep(now)
	}
	v.known[apiv1.EncodeTicket(canonical)] = t
	if t.Node == v.node && t.Incarnation == v.incarnation {
		r, s := rank{t.Job, t.Rank}, session{t.SessionFence, t.SessionSeq}
		if v.ranks[r].before(s) {
			if len(v.ranks) >= maxRanks {
				clear(v.ranks) // the leader's word that a lease has come back holds all the same
			}
			v.ranks[r] = s
		}
	}
	return t, nil
}

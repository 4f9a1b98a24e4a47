package guard

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates holds a token bucket for each peer.
type rates struct {
	limit float64

	mu    sync.Mutex
	peers map[string]*rate.Limiter
	swept time.Time
}

// maxPeers bounds the buckets kept; peers beyond share one.
const maxPeers = 10_000

func newRates(limit float64) *rates { return &rates{limit: limit, peers: map[string]*rate.Limiter{}} }

func (r *rates) allow(peer string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.peers[peer]
	if l == nil {
		if len(r.peers) >= maxPeers {
			r.sweep(now)
			if len(r.peers) >= maxPeers {
				peer = "the others"
			}
		}
		if l = r.peers[peer]; l == nil {
			l = rate.NewLimiter(rate.Limit(r.limit), max(1, int(min(r.limit, 1e9))))
			r.peers[peer] = l
		}
	}
	return l.AllowN(now, 1)
}

// sweep forgets the peers that have not called for a second, whose buckets are full. It does so at most once a second.
func (r *rates) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Second {
		return
	}
	r.swept = now
	for p, l := range r.peers {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(r.peers, p)
		}
	}
}

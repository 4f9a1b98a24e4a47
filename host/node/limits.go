package node

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/admission"
)

// caller names whose call it is: by certificate, or where nobody is asked who they are, by address.
func caller(r *http.Request) string {
	if r.TLS != nil {
		if id, err := identity.Peer(r.TLS); err == nil {
			return id.String()
		}
	}
	return admission.PeerOf(r.RemoteAddr)
}

// seldom lets one event a second have an effect, in the log or at the control plane: whoever causes them decides how
// many there are.
type seldom struct {
	mu     sync.Mutex
	at     time.Time
	passed int
}

// next reports whether an event is to have its effect, and how many had none since the last that had.
func (s *seldom) next(now time.Time) (without int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.at) < time.Second {
		s.passed++
		return 0, false
	}
	without, s.passed, s.at = s.passed, 0, now
	return without, true
}

// maxPeers bounds the limiter's memory.
const maxPeers = 1 << 14

// limiter allows a peer so many requests a second: a bucket that a second fills.
type limiter struct {
	rate float64

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	left float64
	at   time.Time
}

func newLimiter(rate float64) *limiter { return &limiter{rate: rate, buckets: map[string]*bucket{}} }

// allow takes one of a peer's requests.
func (l *limiter) allow(peer string, now time.Time) bool {
	if l.rate <= 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[peer]
	burst := max(l.rate, 1)
	if b == nil {
		if len(l.buckets) >= maxPeers {
			l.forget(now)
		}
		b = &bucket{left: burst, at: now}
		l.buckets[peer] = b
	}
	b.left = min(burst, b.left+l.rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// forget drops buckets that are full again, or all. mu is held.
func (l *limiter) forget(now time.Time) {
	for peer, b := range l.buckets {
		if now.Sub(b.at) > time.Second {
			delete(l.buckets, peer)
		}
	}
	if len(l.buckets) >= maxPeers {
		clear(l.buckets)
	}
}

// wrap refuses requests of peers that ask too often.
func (l *limiter) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.allow(admission.PeerOf(r.RemoteAddr), time.Now()) {
			writeError(w, fmt.Errorf("%w requests: %g a second of one peer", ErrTooMany, l.rate))
			return
		}
		next.ServeHTTP(w, r)
	})
}

package node

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace/host/node/errorcode"
	"github.com/millrace/millrace/internal/admission"
)

// maxPeers bounds the memory of a requestLimit.
const maxPeers = 1 << 14

// requestLimit bounds the requests of a peer (an address) per second: each peer has a bucket that fills in a second. It
// is safe for concurrent use.
type requestLimit struct {
	rate float64 // requests a second; 0: any number

	mu      sync.Mutex
	buckets map[string]*bucket
}

// bucket is the number of requests that a peer may still make.
type bucket struct {
	left    float64
	updated time.Time
}

func newRequestLimit(rate float64) *requestLimit {
	return &requestLimit{rate: rate, buckets: map[string]*bucket{}}
}

// allow reports whether a peer may make one request more now, and counts it.
func (l *requestLimit) allow(peer string, now time.Time) bool {
	if l.rate <= 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[peer]
	burst := max(l.rate, 1)
	if b == nil {
		if len(l.buckets) >= maxPeers {
			l.dropFull(now)
		}
		b = &bucket{left: burst, updated: now}
		l.buckets[peer] = b
	}
	b.left = min(burst, b.left+l.rate*now.Sub(b.updated).Seconds())
	b.updated = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// dropFull drops the buckets that are full again, or all if none is. mu is held.
func (l *requestLimit) dropFull(now time.Time) {
	for peer, b := range l.buckets {
		if now.Sub(b.updated) > time.Second {
			delete(l.buckets, peer)
		}
	}
	if len(l.buckets) >= maxPeers {
		clear(l.buckets)
	}
}

// wrap refuses requests of peers that ask too often.
func (l *requestLimit) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.allow(admission.PeerOf(r.RemoteAddr), time.Now()) {
			errorcode.Write(w, fmt.Errorf("%w requests: %g a second of one peer", errorcode.ErrTooMany, l.rate))
			return
		}
		next.ServeHTTP(w, r)
	})
}

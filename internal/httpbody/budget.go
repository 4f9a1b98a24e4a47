package httpbody

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/wait"
)

// Why a message is refused.
var (
	// ErrMemory says that the peer, or all peers together, hold as much memory as they may.
	ErrMemory = errors.New("no memory left for requests")
	// ErrTooLarge says that a message is larger than the call takes.
	ErrTooLarge = errors.New("message too large")
	// ErrRatio says that a message is packed more tightly than data is.
	ErrRatio = errors.New("message packed too tightly")
)

// DefaultMemory is the memory of a budget that names none: room for the largest heartbeat of a node twice.
const DefaultMemory = 512 << 20

// Budget is the memory that the messages of calls take from when they begin to arrive until their calls are answered:
// packed, unpacked and decoded. A peer has at most half of it. It is safe for concurrent use.
type Budget struct {
	total, peer int64
	patience    time.Duration

	mu    sync.Mutex
	used  int64
	most  int64 // used at its highest
	peers map[string]int64
	freed wait.Broadcast // It wakes calls when memory is given back.
}

// patience is how long a call waits for memory that others hold before it is refused.
const patience = 5 * time.Second

// NewBudget makes a budget of a given number of bytes; 0 means DefaultMemory.
func NewBudget(bytes int64) *Budget {
	if bytes <= 0 {
		bytes = DefaultMemory
	}
	return &Budget{
		total: bytes, peer: max(bytes/2, 1), patience: patience, peers: map[string]int64{},
	}
}

// Used returns the bytes that are taken now, and the most that ever were.
func (b *Budget) Used() (now, most int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.most
}

// hold is the part of a budget that one call has taken.
type hold struct {
	b    *Budget
	peer string
	n    int64
}

// tryGrow takes n more bytes, or returns the reason why it cannot. retry reports whether waiting may help, because
// other calls hold the missing bytes. freed is closed when a call gives bytes back.
func (h *hold) tryGrow(n int64) (freed <-chan struct{}, retry bool, err error) {
	b := h.b
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case h.n+n > b.peer:
		return nil, false,
			fmt.Errorf(
				"%w: this call needs more than the %d bytes that one peer may take: send less, or give the server "+
					"more memory for requests", ErrMemory, b.peer)
	case b.peers[h.peer]+n > b.peer:
		return b.freed.Changed(), true,
			fmt.Errorf("%w: calls of this peer take %d of the %d bytes that one peer may: ask again later", ErrMemory,
				b.peers[h.peer], b.peer)
	case b.used+n > b.total:
		return b.freed.Changed(), true,
			fmt.Errorf("%w: calls take %d of %d bytes: ask again later", ErrMemory, b.used, b.total)
	}
	h.n += n
	b.used += n
	b.most = max(b.most, b.used)
	b.peers[h.peer] += n
	return nil, false, nil
}

// atLeast grows the call's hold to n bytes, if it is smaller. It does not wait: two calls that hold bytes and wait
// for more might wait for each other.
func (h *hold) atLeast(n int64) error {
	if n <= h.n {
		return nil
	}
	_, _, err := h.tryGrow(n - h.n)
	return err
}

// begin takes the call's first n bytes, and waits for them at most as long as the budget's patience.
func (h *hold) begin(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, h.b.patience)
	defer cancel()
	for {
		freed, retry, err := h.tryGrow(n)
		if err == nil || !retry {
			return err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return err
		}
	}
}

// set makes the call's hold n bytes: it takes more bytes or gives some back.
func (h *hold) set(n int64) error {
	if n > h.n {
		return h.atLeast(n)
	}
	h.give(h.n - n)
	return nil
}

func (h *hold) give(n int64) {
	if n == 0 {
		return
	}
	b := h.b
	b.mu.Lock()
	defer b.mu.Unlock()
	h.n -= n
	b.used -= n
	if b.peers[h.peer] -= n; b.peers[h.peer] == 0 {
		delete(b.peers, h.peer)
	}
	b.freed.Broadcast()
}

// end gives everything back.
func (h *hold) end() { h.give(h.n) }

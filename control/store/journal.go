package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Journal commits the changes of many callers together: group commit. It takes the writes from one source, which keeps
// one write for each key, so that a key that several callers changed is written once.
type Journal struct {
	term *Term
	o    JournalOptions

	ctx  context.Context
	stop context.CancelFunc
	wake chan struct{}
	done chan struct{}

	kept []Op // writes of the source whose transaction failed; only run uses it

	mu   sync.Mutex
	next *round // the round that callers join now; guarded by mu
	busy bool   // a round is under way, or kept is not empty; guarded by mu
	err  error  // why there will be no further round; guarded by mu
}

// round is one group commit.
type round struct {
	joined bool
	done   chan struct{}
	err    error // set before done is closed
}

func newRound() *round { return &round{done: make(chan struct{})} }

// JournalOptions configure a Journal. All but Source may be left out.
type JournalOptions struct {
	// Source returns at most most writes that are not durable yet, in the order in which the journal writes them, and
	// forgets them. It returns no write if all are durable.
	Source func(most int) []Op
	// Gather is how long the first caller waits for others to join when nothing is being written; 0 means
	// DefaultGather. While a transaction is under way, other callers gather.
	Gather time.Duration
	// Flushed is called after every round, with its duration and the number of keys that it wrote.
	Flushed func(took time.Duration, keys int)
}

// DefaultGather delays an acknowledgement by a millisecond and saves most of the transactions under a moderate load.
const DefaultGather = time.Millisecond

// ErrClosed says that the journal was closed before the write was durable.
var ErrClosed = errors.New("this member stopped leading before the write was durable")

// NewJournal starts a journal of the term; Close ends it.
func (t *Term) NewJournal(o JournalOptions) *Journal {
	if o.Gather == 0 {
		o.Gather = DefaultGather
	}
	if o.Flushed == nil {
		o.Flushed = func(time.Duration, int) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	j := &Journal{term: t, o: o, ctx: ctx, stop: stop, wake: make(chan struct{}, 1), done: make(chan struct{}),
		next: newRound()}
	go j.run()
	return j
}

// Sync returns when every write that the source had is durable, or with the error of a write that failed. If dirty is
// false, the caller has changed nothing since the journal last asked the source, and Sync waits only for a round that
// is under way.
func (j *Journal) Sync(ctx context.Context, dirty bool) error {
	j.mu.Lock()
	if j.err != nil {
		defer j.mu.Unlock()
		return j.err
	}
	if !dirty && !j.busy && !j.next.joined {
		j.mu.Unlock()
		return nil
	}
	r := j.next
	r.joined = true
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *Journal) run() {
	defer close(j.done)
	for {
		select {
		case <-j.wake:
		case <-j.ctx.Done():
			j.fail(ErrClosed)
			return
		}
		select {
		case <-time.After(j.o.Gather):
		case <-j.ctx.Done():
		}
		for r := j.take(); r != nil; r = j.take() {
			begin := time.Now()
			keys, err := j.commit()
			j.o.Flushed(time.Since(begin), keys)
			r.err = err
			close(r.done)
			if errors.Is(err, ErrFenced) || errors.Is(err, ErrClosed) {
				j.fail(err)
				return
			}
		}
	}
}

// take starts the next round; nil: no caller joined it.
func (j *Journal) take() *round {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.busy = j.next.joined || len(j.kept) > 0
	if !j.next.joined {
		return nil
	}
	r := j.next
	j.next = newRound()
	return r
}

// fail ends the calls of the gathered callers, and of all later callers, with an error.
func (j *Journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = err
	j.next.err = err
	close(j.next.done)
	j.next = newRound()
}

// maxTxnBytes keeps a transaction below etcd's bound of 1.5 MiB a request.
const maxTxnBytes = 1 << 20

// commit writes all writes of the source, one transaction after the other. Writes whose transaction failed are kept,
// and are the first of the next round, so that the source's order is kept.
func (j *Journal) commit() (keys int, err error) {
	for {
		if len(j.kept) == 0 {
			j.kept = j.o.Source(maxTxnPuts)
		}
		if len(j.kept) == 0 {
			return keys, nil
		}
		n, size := 0, 0
		for n < min(len(j.kept), maxTxnPuts) {
			size += len(j.kept[n].key) + len(j.kept[n].value)
			if n > 0 && size > maxTxnBytes {
				break
			}
			n++
		}
		if err := j.term.Commit(j.ctx, j.kept[:n]...); err != nil {
			if j.ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", ErrClosed, err)
			}
			return keys, err
		}
		j.kept = j.kept[n:]
		keys += n
	}
}

// Close ends the journal. It gives up the round that is under way, and callers that wait get ErrClosed.
func (j *Journal) Close() {
	j.stop()
	<-j.done
}

// Kick starts a round for the writes of the source, and does not wait for its end.
func (j *Journal) Kick() {
	j.mu.Lock()
	ok := j.err == nil
	if ok {
		j.next.joined = true
	}
	j.mu.Unlock()
	if ok {
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
}

package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Render returns what is to be written for a key now; nil leaves the key as it is. It is called just before the
// transaction, so that one write holds what all callers did until then.
type Render func() *Op

// Journal commits the writes of many callers together.
type Journal struct {
	term   *Term
	gather time.Duration
	flush  func(time.Duration, int) // told of every round

	ctx  context.Context
	stop context.CancelFunc
	wake chan struct{}
	done chan struct{}

	mu   sync.Mutex
	next *round // that callers join now; guarded by mu
	err  error  // why no round will come any more; guarded by mu
}

// round is what is committed together.
type round struct {
	keys   []string
	render map[string]Render
	done   chan struct{}
	err    error // set before done is closed
}

func newRound() *round { return &round{render: map[string]Render{}, done: make(chan struct{})} }

// JournalOptions configure a Journal. The zero value works.
type JournalOptions struct {
	// Gather is how long the first caller waits for others to join when nothing is being written; 0 means 1 ms. While a
	// transaction is on its way, callers gather by themselves.
	Gather time.Duration
	// Flushed, if set, is told how long every flush took and how many keys it wrote.
	Flushed func(took time.Duration, keys int)
}

// DefaultGather costs an acknowledgement a millisecond and saves most transactions of a moderate load.
const DefaultGather = time.Millisecond

// NewJournal starts a journal of the term; Close ends it.
func (t *Term) NewJournal(o JournalOptions) *Journal {
	if o.Gather == 0 {
		o.Gather = DefaultGather
	}
	if o.Flushed == nil {
		o.Flushed = func(time.Duration, int) {}
	}
	ctx, stop := context.WithCancel(context.Background())
	j := &Journal{term: t, gather: o.Gather, flush: o.Flushed, ctx: ctx, stop: stop, wake: make(chan struct{}, 1), done: make(chan struct{}), next: newRound()}
	go j.run()
	return j
}

// ErrClosed says that the journal was closed before the write was durable.
var ErrClosed = errors.New("the journal is closed")

// Pending is a write that was handed to a Journal.
type Pending struct{ r *round }

// Write adds keys to the next round, each with how it is rendered. A key that is in the round already is rendered
// by the later render. It returns at once; Pending.Wait says when the keys are durable.
func (j *Journal) Write(keys []string, render func(key string) *Op) (Pending, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return Pending{}, j.err
	}
	for _, k := range keys {
		if _, ok := j.next.render[k]; !ok {
			j.next.keys = append(j.next.keys, k)
		}
		j.next.render[k] = func() *Op { return render(k) }
	}
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return Pending{j.next}, nil
}

// Wait returns when what was written is durable, or will not be: then why.
func (p Pending) Wait(ctx context.Context) error {
	select {
	case <-p.r.done:
		return p.r.err
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
		if j.gather > 0 {
			select {
			case <-time.After(j.gather):
			case <-j.ctx.Done():
			}
		}
		for r := j.take(); r != nil; r = j.take() {
			begin := time.Now()
			r.err = j.commit(r)
			j.flush(time.Since(begin), len(r.keys))
			close(r.done)
			if errors.Is(r.err, ErrFenced) {
				j.fail(r.err)
				return
			}
		}
	}
}

// take starts the next round; nil when nothing is in it.
func (j *Journal) take() *round {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.next.keys) == 0 {
		return nil
	}
	r := j.next
	j.next = newRound()
	return r
}

// fail refuses what is gathered and what comes.
func (j *Journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = err
	j.next.err = err
	close(j.next.done)
	j.next = newRound()
}

// commit writes a round, in transactions of at most maxTxnPuts, one behind the other, in the order in which the keys
// were first named: a caller's earlier keys are never newer on disk than its later ones.
func (j *Journal) commit(r *round) error {
	ops := make([]Op, 0, min(len(r.keys), maxTxnPuts))
	bytes := 0
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		err := j.term.Commit(j.ctx, ops...)
		ops, bytes = ops[:0], 0
		if err != nil && j.ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ErrClosed, err)
		}
		return err
	}
	for _, k := range r.keys {
		op := r.render[k]()
		if op == nil {
			continue
		}
		// etcd takes requests of 1.5 MiB.
		if len(ops) == maxTxnPuts || bytes+len(op.value) > 1<<20 {
			if err := flush(); err != nil {
				return err
			}
		}
		ops = append(ops, *op)
		bytes += len(op.key) + len(op.value)
	}
	return flush()
}

// Close ends the journal: the round on its way is given up, and whoever waits is told.
func (j *Journal) Close() {
	j.stop()
	<-j.done
}

package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const electionKey = "leader"

// Term is the time during which this member leads.
type Term struct {
	s        *Store
	session  *concurrency.Session
	election *concurrency.Election
	guard    clientv3.Cmp
	fence    uint64
	confirm  confirmations
}

// errLapsed is that a candidate's lease ended before it led, as after a pause of its machine.
var errLapsed = errors.New("the candidate's lease ended before it led")

// Campaign waits until this member leads. The other members learn value: the leader's URL. A candidate whose lease ends
// meanwhile is a candidate again with a new lease.
func (s *Store) Campaign(ctx context.Context, value string) (*Term, error) {
	for {
		t, err := s.candidate(ctx, value)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, errLapsed) || ctx.Err() != nil {
			return nil, fmt.Errorf("campaign: %w", err)
		}
	}
}

// candidate is a candidate for as long as its lease lasts.
func (s *Store) candidate(ctx context.Context, value string) (_ *Term, err error) {
	session, err := concurrency.NewSession(s.client, concurrency.WithTTL(int(s.o.TTL/time.Second)),
		concurrency.WithContext(ctx))
	if err != nil {
		return nil, words(err)
	}
	defer func() {
		if err == nil {
			return
		}
		if session.Ctx().Err() != nil || errors.Is(err, ErrFenced) || errors.Is(err, rpctypes.ErrLeaseNotFound) {
			err = fmt.Errorf("%w: %w", errLapsed, err)
		}
		session.Orphan()
	}()
	e := concurrency.NewElection(session, s.key(electionKey))
	// Without this, a candidate whose lease expired while it waited would never stop waiting.
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(session.Ctx(), cancel)()
	won := make(chan error, 1)
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		won <- e.Campaign(waiting, value)
	}()
	select {
	case err = <-won:
	case <-waiting.Done():
		// The session withdraws by itself, but without a majority that takes seconds, and only Close has to wait for it.
		err = waiting.Err()
	}
	if err != nil {
		return nil, words(err)
	}
	t := &Term{
		s: s, session: session, election: e,
		guard: clientv3.Compare(clientv3.CreateRevision(e.Key()), "=", e.Rev()),
	}
	// The candidate's key may have expired with its lease while the candidate waited for the keys of the others to go.
	if err := t.Check(ctx); err != nil {
		return nil, err
	}
	return t, t.initialise(ctx)
}

// initialise writes the format of an empty store, and refuses the format of another build.
func (t *Term) initialise(ctx context.Context) error {
	value, ok, err := t.Get(ctx, "format")
	switch {
	case err != nil:
		return err
	case ok && string(value) != Format:
		return fmt.Errorf("%w: %q is stored under %s, this build reads %q", ErrFormat, value, t.s.o.Prefix, Format)
	case !ok:
		if err := t.Commit(ctx, Put("format", []byte(Format))); err != nil {
			return err
		}
	}
	return t.number(ctx)
}

// number gives the term its fence: the revision at which its key was created, plus the number from which this etcd
// began to count. That number comes from the time of the first term of the etcd: nodes remember the greatest fence that
// they have seen, so that an etcd that replaces a lost etcd needs greater fences than all of the lost etcd.
func (t *Term) number(ctx context.Context) error {
	value, ok, err := t.Get(ctx, fencesKey)
	if err != nil {
		return err
	}
	first := uint64(time.Now().Unix()) << fenceBits
	if ok {
		if first, err = strconv.ParseUint(string(value), 10, 64); err != nil {
			return fmt.Errorf("%w: key %s: %w", ErrFormat, fencesKey, err)
		}
	} else if err := t.Commit(ctx, Put(fencesKey, strconv.AppendUint(nil, first, 10))); err != nil {
		return err
	}
	t.fence = first + uint64(t.election.Rev())
	return nil
}

// fencesKey holds the number from which the fences of an etcd are counted.
const fencesKey = "fences"

// fenceBits leaves room for a million revisions a second.
const fenceBits = 20

// Fence returns the term's number. Later terms have greater numbers.
func (t *Term) Fence() uint64 { return t.fence }

// Done returns a channel that is closed when the term may be over, because no sign of life reached etcd in time. Only
// the result of a write shows whether the term is over.
func (t *Term) Done() <-chan struct{} { return t.session.Done() }

// Resign ends the term, so that another member may lead at once.
func (t *Term) Resign(ctx context.Context) error {
	err := t.election.Resign(ctx)
	t.session.Orphan()
	if _, revoke := t.s.client.Revoke(ctx, t.session.Lease()); err == nil {
		err = revoke
	}
	if err != nil {
		return fmt.Errorf("resign: %w", err)
	}
	return nil
}

// Op is one write.
type Op struct {
	key    string
	value  []byte
	delete bool
	below  string // delete: every key from key, up to below
}

// Put sets a key. The key is named relative to the store's prefix.
func Put(key string, value []byte) Op { return Op{key: key, value: value} }

// Delete removes a key.
func Delete(key string) Op { return Op{key: key, delete: true} }

// DeletePrefix removes every key with the prefix.
func DeletePrefix(prefix string) Op {
	return Op{key: prefix, delete: true, below: clientv3.GetPrefixRangeEnd(prefix)}
}

func (t *Term) op(o Op) clientv3.Op {
	switch {
	case o.delete && o.below != "":
		return clientv3.OpDelete(t.s.key(o.key), clientv3.WithRange(t.s.key(o.below)))
	case o.delete:
		return clientv3.OpDelete(t.s.key(o.key))
	}
	return clientv3.OpPut(t.s.key(o.key), string(o.value))
}

// Commit makes at most 100 writes durable, all or none, in one transaction. It fails with ErrFenced unless this term
// still holds.
func (t *Term) Commit(ctx context.Context, ops ...Op) error {
	if len(ops) > maxTxnPuts {
		return fmt.Errorf("a transaction of %d writes, at most %d", len(ops), maxTxnPuts)
	}
	then := make([]clientv3.Op, len(ops))
	for i, o := range ops {
		then[i] = t.op(o)
	}
	r, err := t.s.client.Txn(ctx).If(t.guard).Then(then...).Commit()
	if err != nil {
		return fmt.Errorf("write to etcd: %w", words(err))
	}
	if !r.Succeeded {
		return fmt.Errorf("write to etcd: %w", ErrFenced)
	}
	return nil
}

// Check returns ErrFenced unless this term still holds. It reads from a majority.
func (t *Term) Check(ctx context.Context) error { return t.Commit(ctx) }

// confirmTime bounds the check of Confirm.
const confirmTime = 5 * time.Second

// Confirm is Check for many callers. One check serves all callers that came before the check began. A check has its own
// deadline, and does not end with the caller that makes it.
func (t *Term) Confirm(ctx context.Context) error {
	return t.confirm.do(func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
		defer cancel()
		return t.Check(ctx)
	})
}

// confirmations makes one check for all callers that came before the check began.
type confirmations struct {
	begun  atomic.Uint64 // begun counts the checks that have begun.
	mu     sync.Mutex
	result error // result is that of the last check, guarded by mu.
}

// do returns the result of a check that began after the call of do.
func (c *confirmations) do(check func() error) error {
	before := c.begun.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun.Load() > before {
		return c.result // another caller made the check while this one waited
	}
	c.begun.Add(1)
	c.result = check()
	return c.result
}

// Get reads a key. It returns false if the key does not exist.
func (t *Term) Get(ctx context.Context, key string) ([]byte, bool, error) {
	r, err := t.s.client.Get(ctx, t.s.key(key))
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", key, words(err))
	}
	if len(r.Kvs) == 0 {
		return nil, false, nil
	}
	return r.Kvs[0].Value, true, nil
}

// scanPage is how many keys one read of Scan returns.
const scanPage = 1000

// Scan calls fn for every key with the prefix, in order, as of one moment. It holds a page of them at a time.
func (t *Term) Scan(ctx context.Context, prefix string, fn func(key string, value []byte) error) error {
	from, end := t.s.key(prefix), clientv3.GetPrefixRangeEnd(t.s.key(prefix))
	var revision int64
	for {
		r, err := t.s.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(scanPage),
			clientv3.WithRev(revision))
		if err != nil {
			return fmt.Errorf("read %s*: %w", prefix, words(err))
		}
		revision = r.Header.Revision
		if len(r.Kvs) > 0 && revision == 0 {
			return errors.New("etcd names no revision")
		}
		for _, kv := range r.Kvs {
			if err := fn(strings.TrimPrefix(string(kv.Key), t.s.o.Prefix+"/"), kv.Value); err != nil {
				return err
			}
		}
		if !r.More {
			return nil
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
}

// Secret returns the random bytes under a key. It makes them if the key does not exist.
func (t *Term) Secret(ctx context.Context, key string, size int) ([]byte, error) {
	value, ok, err := t.Get(ctx, key)
	if err != nil || ok {
		if err == nil && len(value) != size {
			err = fmt.Errorf("%s has %d bytes, not %d", key, len(value), size)
		}
		return bytes.Clone(value), err
	}
	value = make([]byte, size)
	rand.Read(value) // never fails, by its contract
	return value, t.Commit(ctx, Put(key, value))
}

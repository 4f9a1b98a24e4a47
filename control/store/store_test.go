package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// quick sets short timeouts for a single member, and those of production for a member of a cluster. The term of a
// single member is long, because no other member can take over.
func quick(o Options) Options {
	switch {
	case len(o.Peers) > 0:
		o.TTL = 5 * time.Second
		return o
	case o.TTL == 0:
		o.TTL = 30 * time.Second
	}
	o.Tick, o.Election = 20*time.Millisecond, 200*time.Millisecond
	return o
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(patient(t), quick(o))
	require.NoError(t, err)
	return s
}

// cluster starts members that form one cluster.
func cluster(t *testing.T, n int) []*Store {
	t.Helper()
	peers := make([]string, n)
	for i := range peers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		peers[i] = fmt.Sprintf("m%d=http://%s", i, l.Addr())
		l.Close()
	}
	members := make([]*Store, n)
	var wg sync.WaitGroup
	for i := range members {
		dir := t.TempDir()
		wg.Add(1)
		go func() {
			defer wg.Done()
			s, err := Open(patient(t), quick(Options{Data: dir, Name: fmt.Sprintf("m%d", i), Peers: peers}))
			if assert.NoError(t, err) {
				members[i] = s
			}
		}()
	}
	wg.Wait()
	for _, m := range members {
		require.NotNil(t, m)
	}
	return members
}

func TestWhatWasCommittedIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	o := Options{Data: t.TempDir(), TTL: 5 * time.Second} // the first term ends by itself
	s := open(t, o)
	term, err := s.Campaign(patient(t), "here")
	require.NoError(t, err)
	require.NoError(t, term.Commit(patient(t), Put("a/1", []byte("one")), Put("a/2", []byte("two")), Put("b",
		[]byte("b"))))
	require.NoError(t, term.Commit(patient(t), Delete("a/1")))
	key, err := term.Secret(patient(t), "key", 32)
	require.NoError(t, err)
	first := term.Fence()
	require.NoError(t, s.Close())

	s = open(t, o)
	defer s.Close()
	term, err = s.Campaign(patient(t), "here")
	require.NoError(t, err)
	assert.Greater(t, term.Fence(), first)
	var got []string
	require.NoError(t, term.Scan(patient(t), "a/", func(k string, v []byte) error {
		got = append(got, k+"="+string(v))
		return nil
	}))
	assert.Equal(t, []string{"a/2=two"}, got)
	again, err := term.Secret(patient(t), "key", 32)
	require.NoError(t, err)
	assert.Equal(t, key, again)
	_, ok, err := term.Get(patient(t), "nothing")
	assert.NoError(t, err)
	assert.False(t, ok)
	require.NoError(t, term.Commit(patient(t), DeletePrefix("a/")))
	_, ok, err = term.Get(patient(t), "a/2")
	assert.NoError(t, err)
	assert.False(t, ok)
}

// TestACandidateWhoseLeaseEndsIsOneAgain: a candidate waits for longer than its lease lasts, because the lease is taken
// away, and leads in the end.
func TestACandidateWhoseLeaseEndsIsOneAgain(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Data: t.TempDir()})
	defer s.Close()
	first, err := s.Campaign(patient(t), "first")
	require.NoError(t, err)
	won := make(chan *Term, 1)
	go func() {
		term, err := s.Campaign(patient(t), "second")
		assert.NoError(t, err)
		won <- term
	}()
	// ended revokes the lease of the candidate that is not in the list.
	ended := map[clientv3.LeaseID]bool{first.session.Lease(): true}
	for range 3 {
		require.Eventually(t, func() bool {
			r, err := s.client.Get(patient(t), s.key(electionKey), clientv3.WithPrefix())
			require.NoError(t, err)
			for _, kv := range r.Kvs {
				if id := clientv3.LeaseID(kv.Lease); !ended[id] {
					ended[id] = true
					_, err := s.client.Revoke(patient(t), id)
					require.NoError(t, err)
					return true
				}
			}
			return false
		}, time.Minute, time.Millisecond)
	}
	require.NoError(t, first.Resign(patient(t)))
	second := <-won
	require.NotNil(t, second)
	assert.Greater(t, second.Fence(), first.Fence())
	require.NoError(t, second.Check(patient(t)))
}

func TestScanPagesAndEndsWhenTold(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Data: t.TempDir()})
	defer s.Close()
	term, err := s.Campaign(patient(t), "")
	require.NoError(t, err)
	n := scanPage + 50
	for i := 0; i < n; i += 50 {
		var ops []Op
		for k := i; k < i+50; k++ {
			ops = append(ops, Put(fmt.Sprintf("c/%06x", k), []byte{byte(k)}))
		}
		require.NoError(t, term.Commit(patient(t), ops...))
	}
	count := 0
	require.NoError(t, term.Scan(patient(t), "c/", func(k string, v []byte) error {
		assert.Equal(t, fmt.Sprintf("c/%06x", count), k)
		count++
		return nil
	}))
	assert.Equal(t, n, count)
	require.NoError(t, term.Commit(patient(t), Op{key: "c/000000", below: fmt.Sprintf("c/%06x", n-1), delete: true}))
	count = 0
	stop := errors.New("enough")
	assert.ErrorIs(t, term.Scan(patient(t), "c/", func(string, []byte) error { count++; return stop }), stop)
	assert.Equal(t, 1, count)
	assert.ErrorContains(t, term.Commit(patient(t), make([]Op, maxTxnPuts+1)...), "at most")
}

// TestAnotherLeadsAfterADeath: the leader of three members gives no more signs of life. Another member leads and knows
// all that was committed, and the old term can write nothing.
func TestAnotherLeadsAfterADeath(t *testing.T) {
	t.Parallel()
	members := cluster(t, 3)
	for _, m := range members {
		defer m.Close()
	}
	first, err := members[0].Campaign(patient(t), "zero")
	require.NoError(t, err)
	require.NoError(t, first.Commit(patient(t), Put("k", []byte("by zero"))))
	state := &table{state: map[string]int{}}
	journal := first.NewJournal(JournalOptions{Source: state.take})
	defer journal.Close()

	type elected struct {
		term *Term
		err  error
	}
	wins := make(chan elected, 2)
	losing, lose := context.WithCancel(context.Background())
	for _, m := range members[1:] {
		go func() {
			term, err := m.Campaign(losing, "other")
			wins <- elected{term, err}
		}()
	}
	first.session.Orphan() // it shows no signs of life any more, as a process that was killed
	e := <-wins
	require.NoError(t, e.err)
	lose()
	<-wins
	assert.Greater(t, e.term.Fence(), first.Fence())
	value, ok, err := e.term.Get(patient(t), "k")
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, "by zero", string(value))

	assert.ErrorIs(t, first.Commit(patient(t), Put("k", []byte("stale"))), ErrFenced)
	assert.ErrorIs(t, first.Check(patient(t)), ErrFenced)
	state.add("k")
	assert.ErrorIs(t, journal.Sync(patient(t), true), ErrFenced)
	assert.ErrorIs(t, journal.Sync(patient(t), true), ErrFenced)
	value, _, err = e.term.Get(patient(t), "k")
	require.NoError(t, err)
	assert.Equal(t, "by zero", string(value))

	for _, m := range members {
		require.Eventually(t, func() bool { l, _ := m.Leader(); return l == "other" }, time.Minute,
			10*time.Millisecond)
	}
}

// TestFencesGrowWhereverTheyAreCounted: fences grow over a restart, and also if etcd starts empty because all of it was
// lost.
func TestFencesGrowWhereverTheyAreCounted(t *testing.T) {
	t.Parallel()
	last := uint64(0)
	lead := func(o Options, writes int) {
		s := open(t, o)
		term, err := s.Campaign(patient(t), "x")
		require.NoError(t, err)
		assert.Greater(t, term.Fence(), last)
		last = term.Fence()
		for range writes {
			require.NoError(t, term.Commit(patient(t), Put("k", nil)))
		}
		require.NoError(t, term.Resign(patient(t)))
		require.NoError(t, s.Close())
	}
	o := Options{Data: t.TempDir()}
	lead(o, 20)
	lead(o, 20)
	for at := time.Now().Unix(); time.Now().Unix() == at; {
		time.Sleep(10 * time.Millisecond)
	}
	lead(Options{Data: t.TempDir()}, 0)
}

// TestAMajorityCarriesOn: when one of three members is lost for good, another member leads and commits.
func TestAMajorityCarriesOn(t *testing.T) {
	t.Parallel()
	members := cluster(t, 3)
	first, err := members[0].Campaign(patient(t), "zero")
	require.NoError(t, err)
	require.NoError(t, first.Commit(patient(t), Put("k", []byte("kept"))))
	require.NoError(t, members[0].Close())
	second, err := members[1].Campaign(patient(t), "one")
	require.NoError(t, err)
	value, _, err := second.Get(patient(t), "k")
	require.NoError(t, err)
	assert.Equal(t, "kept", string(value))
	require.NoError(t, second.Commit(patient(t), Put("k", []byte("on"))))
	require.NoError(t, second.Resign(patient(t)))
	third, err := members[2].Campaign(patient(t), "two")
	require.NoError(t, err)
	assert.ErrorIs(t, second.Check(patient(t)), ErrFenced)
	assert.NoError(t, third.Check(patient(t)))
	require.NoError(t, members[2].Close())
	require.NoError(t, members[1].Close())
}

// table is the source of a journal: the keys that callers changed, each once.
type table struct {
	mu    sync.Mutex
	state map[string]int
	dirty []string
}

func (t *table) add(keys ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range keys {
		t.state[k]++
		if !slices.Contains(t.dirty, k) {
			t.dirty = append(t.dirty, k)
		}
	}
}

func (t *table) take(most int) []Op {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ops []Op
	for ; len(t.dirty) > 0 && len(ops) < most; t.dirty = t.dirty[1:] {
		ops = append(ops, Put(t.dirty[0], fmt.Appendf(nil, "%d", t.state[t.dirty[0]])))
	}
	return ops
}

func TestJournalWritesWhatManyCallersDidOnce(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Data: t.TempDir()})
	defer s.Close()
	term, err := s.Campaign(patient(t), "")
	require.NoError(t, err)
	flushed := 0
	state := &table{state: map[string]int{}}
	j := term.NewJournal(JournalOptions{Source: state.take, Flushed: func(time.Duration, int) { flushed++ }})
	assert.NoError(t, j.Sync(patient(t), false), "nothing was changed")
	const callers, turns = 32, 10
	var wg sync.WaitGroup
	for i := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range turns {
				state.add(fmt.Sprintf("s/%d", i%4), "s/all")
				assert.NoError(t, j.Sync(patient(t), true))
			}
		}()
	}
	wg.Wait()
	for i := range 3*maxTxnPuts + 1 {
		state.add(fmt.Sprintf("s/many/%04d", i))
	}
	require.NoError(t, j.Sync(patient(t), true))
	j.Close()
	assert.ErrorIs(t, j.Sync(patient(t), true), ErrClosed)
	assert.Less(t, flushed, callers*turns, "callers do not share transactions")
	got := map[string]string{}
	require.NoError(t, term.Scan(patient(t), "s/", func(k string, v []byte) error { got[k] = string(v); return nil }))
	assert.Equal(t, fmt.Sprint(callers*turns), got["s/all"])
	assert.Equal(t, fmt.Sprint(callers*turns/4), got["s/3"])
	assert.Len(t, got, 4+1+3*maxTxnPuts+1)
}

// fill writes until etcd refuses. etcd checks the size of its file only at times.
func fill(t *testing.T, term *Term) {
	t.Helper()
	value, ctx := bytes.Repeat([]byte("x"), 256<<10), patient(t)
	for i := 0; ; i++ {
		err := term.Commit(ctx, Put(fmt.Sprintf("fill/%02d", i%64), value))
		if errors.Is(err, ErrNoSpace) {
			return
		}
		require.NoError(t, err)
		time.Sleep(5 * time.Millisecond) // it would refuse at last without a pause too, with a larger file
	}
}

// TestAJournalKeepsWhatEtcdRefused: the journal tries writes that a full etcd refused again, before later writes.
func TestAJournalKeepsWhatEtcdRefused(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Data: t.TempDir(), Quota: 2 << 20})
	defer s.Close()
	term, err := s.Campaign(patient(t), "")
	require.NoError(t, err)
	fill(t, term)
	state := &table{state: map[string]int{}}
	j := term.NewJournal(JournalOptions{Source: state.take})
	defer j.Close()
	state.add("s/1")
	assert.ErrorIs(t, j.Sync(patient(t), true), ErrNoSpace)
	assert.ErrorIs(t, j.Sync(patient(t), false), ErrNoSpace, "asked again, it is still not durable")

	require.NoError(t, s.MakeRoom(patient(t), func(ctx context.Context) error {
		return term.Commit(ctx,
			DeletePrefix("fill/"))
	}))
	state.add("s/2")
	require.NoError(t, j.Sync(patient(t), true))
	for _, k := range []string{"s/1", "s/2"} {
		_, ok, err := term.Get(patient(t), k)
		require.NoError(t, err)
		assert.True(t, ok, k)
	}
}

// TestAFullStoreSaysSo: when etcd's quota is used up, writes fail with an error that says so, and reads go on.
// TestOneCheckServesManyCallers: callers that come while a check is under way share the next check, whatever its
// result, and a later caller gets another check.
func TestOneCheckServesManyCallers(t *testing.T) {
	var c confirmations
	errOver := errors.New("over")
	begun, end := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, c.do(func() error { close(begun); <-end; return nil }), "the first check, of the term that held")
	})
	<-begun
	const callers = 50
	results, checks := make(chan error, callers), make(chan struct{}, callers)
	for range callers {
		wg.Go(func() { results <- c.do(func() error { checks <- struct{}{}; return errOver }) })
	}
	close(end)
	wg.Wait()
	for range callers {
		assert.ErrorIs(t, <-results, errOver, "the result of the first check is older than the call")
	}
	assert.GreaterOrEqual(t, len(checks), 1)
	assert.NoError(t, c.do(func() error { return nil }), "a later caller gets another check")
}

func TestAFullStoreSaysSo(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Data: t.TempDir(), Quota: 2 << 20})
	defer s.Close()
	term, err := s.Campaign(patient(t), "")
	require.NoError(t, err)
	fill(t, term)
	_, ok, err := term.Get(patient(t), "fill/00")
	assert.NoError(t, err)
	assert.True(t, ok)
	require.Eventually(t, func() bool {
		h, err := s.Healthy(patient(t))
		return err == nil && len(h.Alarms) == 1 && h.Alarms[0] == "NOSPACE"
	}, time.Minute, 10*time.Millisecond)
}

func TestAnotherFormatIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Data: t.TempDir()})
	defer s.Close()
	term, err := s.Campaign(patient(t), "")
	require.NoError(t, err)
	require.NoError(t, term.Commit(patient(t), Put("format", []byte("99"))))
	require.NoError(t, term.Resign(patient(t)))
	_, err = s.Campaign(patient(t), "")
	assert.ErrorIs(t, err, ErrFormat)
}

func TestAnEtcdElsewhereServesToo(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + l.Addr().String()
	l.Close()
	inside := open(t, Options{Data: t.TempDir(), ClientURL: url})
	defer inside.Close()
	outside := open(t, Options{External: []string{url}})
	defer outside.Close()
	term, err := outside.Campaign(patient(t), "outside")
	require.NoError(t, err)
	require.NoError(t, term.Commit(patient(t), Put("k", nil)))
	require.Eventually(t, func() bool { l, _ := inside.Leader(); return l == "outside" }, time.Minute,
		10*time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, quick(Options{External: []string{"127.0.0.1:1"}}))
	assert.ErrorContains(t, err, "does not answer")
}

// TestSocketForEtcdctlIsItsOwners: only its owner may connect to the socket, because a client may change everything.
func TestSocketForEtcdctlIsItsOwners(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "etcd.sock")
	s := open(t, Options{Data: t.TempDir(), ClientURL: "unix://" + path})
	defer s.Close()
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestOptionsThatCannotBe(t *testing.T) {
	for name, o := range map[string]Options{
		"data folder":       {},
		"not both":          {Peers: []string{"a=http://h:1"}, External: []string{"h:1"}},
		"whole seconds":     {Data: "x", TTL: 1500 * time.Millisecond},
		"none of the peers": {Data: "x", Name: "c", Peers: []string{"a=http://h:1", "b=http://h:2"}},
		"want NAME=":        {Data: "x", Name: "a", Peers: []string{"http://h:1"}},
		"wants TLS":         {Data: "x", Name: "a", Peers: []string{"a=https://h:1"}},
		"its key":           {Data: "x", Cert: "c.pem"},
		"quota":             {Data: "x", Quota: 5},
	} {
		t.Run(name, func(t *testing.T) {
			if o.Data != "" {
				o.Data = t.TempDir()
			}
			_, err := Open(patient(t), o)
			assert.ErrorContains(t, err, name)
		})
	}
}

func TestLogsAreQuiet(t *testing.T) {
	var out bytes.Buffer
	l := zapLogger(slog.New(slog.NewTextHandler(io.MultiWriter(&out), &slog.HandlerOptions{Level: slog.LevelInfo})))
	l.Info("started")
	l.Warn("slow disk")
	assert.Empty(t, out.String())
	l.Error("it broke")
	assert.Contains(t, out.String(), "level=WARN")
	assert.Contains(t, out.String(), `msg="etcd: it broke"`)
	assert.True(t, strings.Count(out.String(), "\n") == 1)
}

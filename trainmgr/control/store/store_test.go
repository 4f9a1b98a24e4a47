package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quick are the shortest times that etcd takes.
func quick(o Options) Options {
	o.Tick, o.Election, o.TTL = 20*time.Millisecond, 200*time.Millisecond, time.Second
	return o
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(patient(t), quick(o))
	require.NoError(t, err)
	return s
}

// cluster starts members that find each other.
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
	dir := t.TempDir()
	s := open(t, Options{Data: dir})
	term, err := s.Campaign(patient(t), "here")
	require.NoError(t, err)
	require.NoError(t, term.Commit(patient(t), Put("a/1", []byte("one")), Put("a/2", []byte("two")), Put("b", []byte("b"))))
	require.NoError(t, term.Commit(patient(t), Delete("a/1")))
	key, err := term.Secret(patient(t), "key", 32)
	require.NoError(t, err)
	first := term.Fence()
	require.NoError(t, s.Close())

	s = open(t, Options{Data: dir})
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

func TestScanPagesAndEndsWhenTold(t *testing.T) {
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
	require.NoError(t, term.Commit(patient(t), DeleteRange("c/000000", fmt.Sprintf("c/%06x", n-1))))
	count = 0
	stop := errors.New("enough")
	assert.ErrorIs(t, term.Scan(patient(t), "c/", func(string, []byte) error { count++; return stop }), stop)
	assert.Equal(t, 1, count)
	assert.ErrorContains(t, term.Commit(patient(t), make([]Op, maxTxnPuts+1)...), "at most")
}

// TestAnotherLeadsAfterADeath: of three members the one that leads dies without a word; another leads, knows what was
// committed, and the dead one's term writes nothing any more.
func TestAnotherLeadsAfterADeath(t *testing.T) {
	t.Parallel()
	members := cluster(t, 3)
	for _, m := range members {
		defer m.Close()
	}
	first, err := members[0].Campaign(patient(t), "zero")
	require.NoError(t, err)
	require.NoError(t, first.Commit(patient(t), Put("k", []byte("by zero"))))
	journal := first.NewJournal(JournalOptions{})
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
	first.abandon()
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
	p, err := journal.Write([]string{"k"}, func(k string) *Op { return &Op{key: k, value: []byte("stale")} })
	require.NoError(t, err)
	assert.ErrorIs(t, p.Wait(patient(t)), ErrFenced)
	require.Eventually(t, func() bool {
		_, err := journal.Write([]string{"k"}, func(string) *Op { return nil })
		return errors.Is(err, ErrFenced)
	}, 10*time.Second, time.Millisecond)
	value, _, err = e.term.Get(patient(t), "k")
	require.NoError(t, err)
	assert.Equal(t, "by zero", string(value))

	for _, m := range members {
		require.Eventually(t, func() bool { l, _ := m.Leader(); return l == "other" }, 10*time.Second, 10*time.Millisecond)
	}
}

// TestAMajorityCarriesOn: with one member of three gone for good, another leads and commits.
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

func TestJournalWritesWhatManyCallersDidOnce(t *testing.T) {
	s := open(t, Options{Data: t.TempDir()})
	defer s.Close()
	term, err := s.Campaign(patient(t), "")
	require.NoError(t, err)
	var flushed, keys int
	j := term.NewJournal(JournalOptions{Flushed: func(_ time.Duration, n int) { flushed++; keys += n }})
	var mu sync.Mutex
	state := map[string]int{}
	const callers, turns = 32, 10
	var wg sync.WaitGroup
	for i := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			own := []string{fmt.Sprintf("s/%d", i%4), "s/all"}
			for range turns {
				mu.Lock()
				for _, k := range own {
					state[k]++
				}
				mu.Unlock()
				p, err := j.Write(own, func(k string) *Op {
					mu.Lock()
					defer mu.Unlock()
					op := Put(k, fmt.Appendf(nil, "%d", state[k]))
					return &op
				})
				if assert.NoError(t, err) {
					assert.NoError(t, p.Wait(patient(t)))
				}
			}
		}()
	}
	wg.Wait()
	j.Close()
	_, err = j.Write([]string{"late"}, func(string) *Op { return nil })
	assert.ErrorIs(t, err, ErrClosed)
	assert.Less(t, flushed, callers*turns, "callers do not share transactions")
	got := map[string]string{}
	require.NoError(t, term.Scan(patient(t), "s/", func(k string, v []byte) error { got[k] = string(v); return nil }))
	assert.Equal(t, fmt.Sprint(callers*turns), got["s/all"])
	assert.Equal(t, fmt.Sprint(callers*turns/4), got["s/3"])
}

// TestAFullStoreSaysSo: etcd's quota is used up; writes fail in words, reads go on.
func TestAFullStoreSaysSo(t *testing.T) {
	s := open(t, Options{Data: t.TempDir(), Quota: 2 << 20})
	defer s.Close()
	term, err := s.Campaign(patient(t), "")
	require.NoError(t, err)
	value := bytes.Repeat([]byte("x"), 256<<10)
	for i := 0; err == nil && i < 64; i++ {
		err = term.Commit(patient(t), Put(fmt.Sprintf("fill/%d", i), value))
	}
	require.ErrorIs(t, err, ErrNoSpace)
	_, ok, err := term.Get(patient(t), "fill/0")
	assert.NoError(t, err)
	assert.True(t, ok)
	require.Eventually(t, func() bool {
		h, err := s.Healthy(patient(t))
		return err == nil && len(h.Alarms) == 1 && h.Alarms[0] == "NOSPACE"
	}, 10*time.Second, 10*time.Millisecond)
}

func TestAnotherFormatIsRefused(t *testing.T) {
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
	require.Eventually(t, func() bool { l, _ := inside.Leader(); return l == "outside" }, 10*time.Second, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, quick(Options{External: []string{"127.0.0.1:1"}}))
	assert.ErrorContains(t, err, "does not answer")
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

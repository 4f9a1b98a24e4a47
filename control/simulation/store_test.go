package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	etcd "github.com/millrace/millrace/control/store"
)

// testedStore is a store with two members, 0 and 1, that the suite drives.
type testedStore interface {
	// campaign makes a member a candidate. The result waits until the member leads, and returns the fence of its term.
	campaign(member int) (leads func() uint64)
	// write writes with the last term of a member.
	write(member int, ops ...op) error
	// writeUnanswered writes, and the answer to the member is lost.
	writeUnanswered(member int, ops ...op) error
	// records returns the records, as key=value, in the order of their keys.
	records() []string
	// part cuts a member off from the store. It returns when no member leads.
	part(member int)
	// rejoin ends the cut.
	rejoin(member int)
	// fill makes the store full. It may write records whose keys begin with "fill/".
	fill(member int)
	// refuses waits until the full store has refused to elect a candidate.
	refuses(member int)
	// makeRoom makes the store take records again.
	makeRoom()
}

// TestStoreSuite checks that the model of the store behaves as etcd behind package store.
func TestStoreSuite(t *testing.T) {
	runSuite(t, storeSuite, map[string]func(t *testing.T) testedStore{"model": newTestedModel, "etcd": newTestedEtcd})
}

// runSuite runs each check of a suite on a model and on what the model stands for. begin makes them, by their names.
func runSuite[T any](t *testing.T, suite map[string]func(*testing.T, T), begin map[string]func(*testing.T) T) {
	for name, begin := range begin {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for name, check := range suite {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					check(t, begin(t))
				})
			}
		})
	}
}

func put(key, value string) op { return op{key: key, data: []byte(value)} }

// storeSuite holds what the members of a day rely on.
var storeSuite = map[string]func(t *testing.T, s testedStore){
	"a later term reads what was written, and has a greater fence": func(t *testing.T, s testedStore) {
		first := s.campaign(0)()
		require.NoError(t, s.write(0, put("job/b/state", "2"), put("job/a/state", "1"), put("job/a/empty", "")))
		require.NoError(t, s.write(0, put("job/a/state", "3")))
		s.part(0)
		assert.Greater(t, s.campaign(1)(), first)
		assert.Equal(t, []string{"job/a/empty=", "job/a/state=3", "job/b/state=2"}, s.records())
	},
	"one member leads": func(t *testing.T, s testedStore) {
		first := s.campaign(0)()
		leads := s.campaign(1)
		for n := range 20 {
			require.NoError(t, s.write(0, put("job/a/state", fmt.Sprint(n))))
		}
		s.part(0)
		assert.Greater(t, leads(), first)
		require.NoError(t, s.write(1, put("job/b/state", "1")))
		assert.Equal(t, []string{"job/a/state=19", "job/b/state=1"}, s.records())
	},
	"a former leader writes nothing": func(t *testing.T, s testedStore) {
		s.campaign(0)()
		require.NoError(t, s.write(0, put("job/a/state", "1")))
		s.part(0)
		s.campaign(1)()
		require.NoError(t, s.write(1, put("job/a/state", "2")))
		s.rejoin(0)
		assert.ErrorIs(t, s.write(0, put("job/a/state", "3"), put("job/b/state", "3")), errFenced)
		assert.ErrorIs(t, s.write(0, op{key: "job/", prefix: true}), errFenced)
		assert.ErrorIs(t, s.write(0), errFenced, "a write of nothing checks the term")
		assert.Equal(t, []string{"job/a/state=2"}, s.records())
	},
	"a leader whose term ended writes nothing though no other leads": func(t *testing.T, s testedStore) {
		first := s.campaign(0)()
		s.part(0)
		s.rejoin(0)
		assert.ErrorIs(t, s.write(0, put("job/a/state", "1")), errFenced)
		assert.Empty(t, s.records())
		assert.Greater(t, s.campaign(0)(), first, "the member may lead once more")
		assert.NoError(t, s.write(0, put("job/a/state", "2")))
	},
	"a write is whole": func(t *testing.T, s testedStore) {
		s.campaign(0)()
		require.NoError(t, s.write(0, put("job/a/state", "1"), put("job/a/e0/mark", "1"), put("job/a/e1/mark", "1"),
			put("job/a/ranks", "1"), put("job/ab/e0/mark", "1"), put("job/b/state", "1")))
		require.NoError(t, s.write(0, put("job/a/state", "2"), op{key: "job/a/e", prefix: true}, op{key: "job/a/ranks"},
			op{key: "job/a/none"}, op{key: "job/none/", prefix: true}))
		want := []string{"job/a/state=2", "job/ab/e0/mark=1", "job/b/state=1"}
		assert.Equal(t, want, s.records())

		assert.ErrorIs(t, s.write(0, put("job/c", "1"), put("job/a/state", "3"), put("job/a/state", "4")), errWrite)
		assert.ErrorIs(t, s.write(0, put("job/c", "1"), put("job/a/state", "3"), op{key: "job/a/state"}), errWrite)
		assert.ErrorIs(t, s.write(0, op{key: "job/a/", prefix: true}, put("job/a/state", "3")), errWrite)
		assert.Equal(t, want, s.records())
		require.NoError(t, s.write(0, op{key: "job/a/", prefix: true}, op{key: "job/a/state"},
			op{key: "job/a/s", prefix: true}), "records may be deleted twice")
		assert.Equal(t, want[1:], s.records())
	},
	"a write has a bound": func(t *testing.T, s testedStore) {
		s.campaign(0)()
		var ops []op
		for n := range mostRecords {
			ops = append(ops, put(fmt.Sprintf("job/a/%03d", n), "1"))
		}
		require.NoError(t, s.write(0, ops...))
		assert.Len(t, s.records(), mostRecords)
		for n := range ops {
			ops[n].data = []byte("2")
		}
		assert.ErrorIs(t, s.write(0, append(ops, put("job/b", "2"))...), errWrite)
		assert.Equal(t, "job/a/000=1", s.records()[0])
	},
	"a write without an answer may be repeated": func(t *testing.T, s testedStore) {
		s.campaign(0)()
		require.NoError(t, s.write(0, put("job/a/state", "1"), put("job/a/e0/mark", "1")))
		ops := []op{put("job/a/state", "2"), {key: "job/a/e", prefix: true}}
		err := s.writeUnanswered(0, ops...)
		require.Error(t, err)
		assert.NotErrorIs(t, err, errFenced, "a lost answer says nothing of the term")
		assert.Equal(t, []string{"job/a/state=2"}, s.records())
		s.rejoin(0)
		require.NoError(t, s.write(0, ops...))
		assert.Equal(t, []string{"job/a/state=2"}, s.records())
	},
	"a full store takes no records and goes on": func(t *testing.T, s testedStore) {
		s.campaign(0)()
		require.NoError(t, s.write(0, put("job/a/state", "1"), put("job/b/state", "1")))
		s.fill(0)
		assert.ErrorIs(t, s.write(0, put("job/a/state", "2")), errFull)
		assert.ErrorIs(t, s.write(0, put("job/a/state", "2"), op{key: "job/b/state"}), errFull)
		assert.Equal(t, []string{"job/a/state=1", "job/b/state=1"}, s.records())
		assert.NoError(t, s.write(0), "the term goes on")
		require.NoError(t, s.write(0, op{key: "job/b/state"}), "a full store deletes")
		assert.Equal(t, []string{"job/a/state=1"}, s.records())
		s.makeRoom()
		require.NoError(t, s.write(0, put("job/a/state", "2")))
		assert.Equal(t, []string{"job/a/state=2"}, s.records())
	},
	"a full store elects no leader": func(t *testing.T, s testedStore) {
		first := s.campaign(0)()
		s.fill(0)
		s.part(0)
		leads := s.campaign(1)
		s.refuses(1)
		s.rejoin(0)
		assert.ErrorIs(t, s.write(0), errFenced)
		s.makeRoom()
		assert.Greater(t, leads(), first)
		assert.NoError(t, s.write(1, put("job/a/state", "1")))
	},
}

// testedModel drives the model on virtual time.
type testedModel struct {
	t       *testing.T
	world   *World
	terms   [2]*term
	parted  [2]bool
	waiting [2]bool // The member is a candidate.
}

func newTestedModel(t *testing.T) testedStore {
	w := New(1, Options{})
	w.events, w.faultsEnd, w.store = nil, start, newStore(w)
	return &testedModel{t: t, world: w}
}

// pass lets a second pass, in which leaders extend their terms and candidates campaign.
func (m *testedModel) pass() {
	w := m.world
	w.now = w.now.Add(time.Second)
	for i, t := range m.terms {
		if t != nil && !m.parted[i] {
			w.store.extend(t.fence)
		}
		if m.waiting[i] && !m.parted[i] {
			if fence, won := w.store.campaign(w.members[i]); won {
				m.waiting[i], m.terms[i] = false, &term{member: w.members[i], fence: fence}
			}
		}
	}
}

func (m *testedModel) campaign(member int) func() uint64 {
	m.waiting[member] = true
	return func() uint64 {
		for m.waiting[member] {
			m.pass()
		}
		return m.terms[member].fence
	}
}

func (m *testedModel) write(member int, ops ...op) error {
	m.pass()
	return m.world.store.apply(m.terms[member].fence, ops)
}

// writeUnanswered writes by term.commit, as members do.
func (m *testedModel) writeUnanswered(member int, ops ...op) (result error) {
	w := m.world
	w.faults.lostAnswer, w.faultsEnd = 1, w.now.Add(time.Hour)
	answered := false
	m.terms[member].commit("a record", ops, func(err error) { result, answered = err, true })
	w.faultsEnd = start
	for n := range time.Duration(10) {
		w.after(n*time.Second, "the term goes on", func() { w.store.extend(m.terms[member].fence) })
	}
	for !answered {
		_, err := w.Run(w.Executed + 1)
		require.NoError(m.t, err)
	}
	return result
}

func (m *testedModel) records() (list []string) {
	for _, key := range m.world.store.sorted() {
		list = append(list, key+"="+string(m.world.store.data[key]))
	}
	return list
}

func (m *testedModel) part(member int) {
	m.parted[member] = true
	for m.world.store.leads(m.terms[member].fence) {
		m.pass()
	}
}

func (m *testedModel) rejoin(member int) { m.parted[member] = false }
func (m *testedModel) fill(int)          { m.world.store.full = true }
func (m *testedModel) makeRoom()         { m.world.store.full = false }

func (m *testedModel) refuses(member int) {
	for range 2 * leaderTime / time.Second {
		m.pass()
	}
	require.True(m.t, m.waiting[member])
}

// testedEtcd drives an embedded etcd through package store. The members reach it by links that can be cut.
type testedEtcd struct {
	t       *testing.T
	inside  *etcd.Store // It runs etcd, and is a third member, which never campaigns.
	client  *clientv3.Client
	links   [2]*link
	members [2]*etcd.Store
	terms   [2]*etcd.Term
	refused chan struct{} // It has room for one refusal of a campaign.
	room    chan struct{} // It is closed when the store has room.
}

func newTestedEtcd(t *testing.T) testedStore {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	e := &testedEtcd{t: t, refused: make(chan struct{}, 1), room: make(chan struct{})}
	e.inside, err = etcd.Open(e.patient(), etcd.Options{
		Data: t.TempDir(), ClientURL: "http://" + address, Quota: 2 << 20, Tick: 20 * time.Millisecond,
		Election: 200 * time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.inside.Close()) })
	e.client, err = clientv3.New(clientv3.Config{Endpoints: []string{address}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, e.client.Close()) })
	for i := range e.members {
		e.links[i] = newLink(t, address)
		e.members[i], err = etcd.Open(e.patient(), etcd.Options{
			External: []string{e.links[i].address}, TTL: 30 * time.Second,
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = e.members[i].Close() }) // The link may be cut.
	}
	return e
}

func (e *testedEtcd) patient() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	e.t.Cleanup(cancel)
	return ctx
}

func (e *testedEtcd) campaign(member int) func() uint64 {
	won := make(chan *etcd.Term, 1)
	go func() {
		for ctx := e.patient(); ; {
			term, err := e.members[member].Campaign(ctx, fmt.Sprint(member))
			if errors.Is(err, etcd.ErrNoSpace) {
				e.refused <- struct{}{}
				<-e.room
				continue // The member campaigns again, as a member of the control plane does.
			}
			assert.NoError(e.t, err)
			won <- term
			return
		}
	}()
	return func() uint64 {
		e.terms[member] = <-won
		require.NotNil(e.t, e.terms[member])
		return e.terms[member].Fence()
	}
}

func (e *testedEtcd) write(member int, ops ...op) error {
	for ctx := e.patient(); ; {
		err := e.commit(ctx, member, ops)
		known := errors.Is(err, errFenced) || errors.Is(err, errFull) || errors.Is(err, errWrite)
		if err == nil || known || ctx.Err() != nil {
			return err
		}
		// The connection broke when a cut of the link ended.
	}
}

// commit writes, and returns the error that the model returns.
func (e *testedEtcd) commit(ctx context.Context, member int, ops []op) error {
	var list []etcd.Op
	for _, o := range ops {
		switch {
		case o.prefix:
			list = append(list, etcd.DeletePrefix(o.key))
		case o.data == nil:
			list = append(list, etcd.Delete(o.key))
		default:
			list = append(list, etcd.Put(o.key, o.data))
		}
	}
	switch err := e.terms[member].Commit(ctx, list...); {
	case errors.Is(err, etcd.ErrFenced):
		return errFenced
	case errors.Is(err, etcd.ErrNoSpace):
		return errFull
	case errors.Is(err, rpctypes.ErrDuplicateKey), err != nil && strings.Contains(err.Error(), "at most 100"):
		return errWrite
	default:
		return err
	}
}

func (e *testedEtcd) writeUnanswered(member int, ops ...op) error {
	before := e.records()
	e.links[member].cut(false)
	ctx, cancel := context.WithCancel(e.patient())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- e.commit(ctx, member, ops) }()
	require.Eventually(e.t, func() bool { return !assert.ObjectsAreEqual(before, e.records()) }, time.Minute,
		10*time.Millisecond)
	cancel()
	return <-result
}

func (e *testedEtcd) records() (list []string) {
	r, err := e.client.Get(e.patient(), etcd.DefaultPrefix+"/job/", clientv3.WithPrefix())
	require.NoError(e.t, err)
	for _, kv := range r.Kvs {
		list = append(list, strings.TrimPrefix(string(kv.Key), etcd.DefaultPrefix+"/")+"="+string(kv.Value))
	}
	return list
}

// part lets the other members depose the leader, as they do when its process has died.
func (e *testedEtcd) part(member int) {
	e.links[member].cut(true)
	deposed, err := e.inside.Depose(e.patient(), fmt.Sprint(member))
	require.NoError(e.t, err)
	require.True(e.t, deposed)
}

func (e *testedEtcd) rejoin(member int) { e.links[member].mend() }

func (e *testedEtcd) fill(member int) {
	value := bytes.Repeat([]byte("x"), 256<<10)
	for n := 0; ; n++ {
		err := e.write(member, op{key: fmt.Sprintf("fill/%02d", n%64), data: value})
		if errors.Is(err, errFull) {
			return
		}
		require.NoError(e.t, err)
	}
}

func (e *testedEtcd) refuses(int) { <-e.refused }

func (e *testedEtcd) makeRoom() {
	require.NoError(e.t, e.inside.MakeRoom(e.patient(), func(ctx context.Context) error {
		_, err := e.client.Delete(ctx, etcd.DefaultPrefix+"/fill/", clientv3.WithPrefix())
		return err
	}))
	close(e.room)
}

// link forwards connections to an address. A cut link loses what it gets.
type link struct {
	address string

	mu struct {
		sync.Mutex
		requestsLost, answersLost bool
		connections               map[net.Conn]bool
	}
}

func newLink(t *testing.T, to string) *link {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &link{address: listener.Addr().String()}
	l.mu.connections = map[net.Conn]bool{}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			l.hold(near, far)
			wg.Add(2)
			go func() { defer wg.Done(); l.forward(far, near, &l.mu.requestsLost) }()
			go func() { defer wg.Done(); l.forward(near, far, &l.mu.answersLost) }()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		l.mend()
		wg.Wait()
	})
	return l
}

func (l *link) hold(connections ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range connections {
		l.mu.connections[c] = true
	}
}

// forward copies what comes from one connection to the other, unless it is lost.
func (l *link) forward(to, from net.Conn, lost *bool) {
	defer to.Close()
	for buffer := make([]byte, 1<<16); ; {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		l.mu.Lock()
		drop := *lost
		l.mu.Unlock()
		if drop {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			_, _ = io.Copy(io.Discard, from)
			return
		}
	}
}

// cut makes the link lose answers, and requests too if both is true.
func (l *link) cut(both bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.requestsLost, l.mu.answersLost = both, true
}

// mend ends a cut. The connections of the cut are closed, because they miss bytes.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.requestsLost, l.mu.answersLost = false, false
	for c := range l.mu.connections {
		_ = c.Close()
	}
	clear(l.mu.connections)
}

package simulation

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// leaderTime is the time after which the store replaces a leader that does not extend its term.
const leaderTime = 3 * time.Second

// errFenced says that another member leads.
var errFenced = errors.New("another member leads")

// errStore reports that the result of a write is unknown.
var errStore = errors.New("the store has not answered")

// errFull reports that the store takes no records.
var errFull = errors.New("the store is full")

// errWrite reports a write that the store can never carry out.
var errWrite = errors.New("a write has too many records, or writes a record twice")

// mostRecords is the greatest number of records of one write.
const mostRecords = 100

// store is a model of etcd. It holds records and elects one leader at a time. A write carries the fence of its term and
// is atomic. The tests run one suite against the model and against package store.
type store struct {
	world  *World
	data   map[string][]byte
	fence  uint64
	leader *member // A nil leader means that no member has led.
	until  time.Time
	full   bool // The store takes no records and elects no leader.
}

func newStore(w *World) *store { return &store{world: w, data: map[string][]byte{}, fence: 1 << 20} }

// op writes one record. An op with nil data deletes the record. An op with prefix deletes all records whose keys have
// the prefix.
type op struct {
	key    string
	data   []byte
	prefix bool
}

// campaign makes a member the leader, if none leads.
func (s *store) campaign(m *member) (fence uint64, won bool) {
	if s.full || s.leads(s.fence) {
		return 0, false
	}
	s.fence++
	s.leader, s.until = m, s.world.now.Add(leaderTime)
	return s.fence, true
}

// leads reports whether the term with a fence goes on.
func (s *store) leads(fence uint64) bool {
	return s.fence == fence && s.leader != nil && s.world.now.Before(s.until)
}

// leaderBeside names the leader, unless it is the member that asks or the member's term is over.
func (s *store) leaderBeside(m *member) string {
	if s.leader == nil || s.leader == m || !s.world.now.Before(s.until) {
		return ""
	}
	return s.leader.name
}

// extend keeps a leader in its place.
func (s *store) extend(fence uint64) bool {
	if !s.leads(fence) {
		return false
	}
	s.until = s.world.now.Add(leaderTime)
	return true
}

// fillStore fills the store for some time.
func (w *World) fillStore() {
	w.store.full = true
	w.note("the store is full")
	w.after(w.between(time.Second, 20*time.Second), "the store has room", func() { w.store.full = false })
}

// check returns an error if a write can never be carried out. As etcd does, it refuses a write that puts a record and
// puts or deletes the same record.
func check(ops []op) error {
	if len(ops) > mostRecords {
		return errWrite
	}
	for i, put := range ops {
		for k, o := range ops {
			if i != k && put.data != nil && (o.key == put.key || o.prefix && strings.HasPrefix(put.key, o.key)) {
				return errWrite
			}
		}
	}
	return nil
}

// apply carries out a write if the term of the write goes on.
func (s *store) apply(fence uint64, ops []op) error {
	switch err := check(ops); {
	case err != nil:
		return err
	case s.full && slices.ContainsFunc(ops, func(o op) bool { return o.data != nil }):
		return errFull
	case !s.leads(fence) && s.world.mutant != UnfencedWrites:
		return errFenced
	}
	for _, o := range ops {
		switch {
		case o.prefix:
			maps.DeleteFunc(s.data, func(k string, _ []byte) bool { return strings.HasPrefix(k, o.key) })
		case o.data == nil:
			delete(s.data, o.key)
		default:
			s.data[o.key] = slices.Clone(o.data)
		}
	}
	return nil
}

// sorted returns the keys in order.
func (s *store) sorted() []string { return slices.Sorted(maps.Keys(s.data)) }

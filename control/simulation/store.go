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

// store is a model of etcd. It holds records and elects one leader at a time. A write carries the fence of its term and
// is atomic.
type store struct {
	world  *World
	data   map[string][]byte
	fence  uint64
	leader *member // A nil leader means that no member leads.
	until  time.Time
}

func newStore(w *World) *store { return &store{world: w, data: map[string][]byte{}, fence: 1 << 20} }

// op writes one record. An op without data deletes the record. An op with prefix deletes all records whose keys have
// the prefix.
type op struct {
	key    string
	data   []byte
	prefix bool
}

// campaign makes a member the leader, if none leads.
func (s *store) campaign(m *member) (fence uint64, won bool) {
	if s.leader != nil && s.world.now.Before(s.until) {
		return 0, false
	}
	s.fence++
	s.leader, s.until = m, s.world.now.Add(leaderTime)
	return s.fence, true
}

// extend keeps a leader in its place.
func (s *store) extend(fence uint64) bool {
	if s.fence != fence || s.leader == nil || !s.world.now.Before(s.until) {
		return false
	}
	s.until = s.world.now.Add(leaderTime)
	return true
}

// apply carries out a write if the fence of the write is that of the last term.
func (s *store) apply(fence uint64, ops []op) error {
	if fence != s.fence && !s.world.mutants.has(UnfencedWrites) {
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

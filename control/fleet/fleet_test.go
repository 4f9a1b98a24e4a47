package fleet

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// after returns a moment of the tests.
func after(seconds float64) time.Time {
	return begin.Add(time.Duration(seconds * float64(time.Second)))
}

func schemaOf(t testing.TB, columns []columntypes.Column) *apiv1.Schema {
	b, err := api.EncodeColumns(columns)
	require.NoError(t, err)
	d := sha256.Sum256(b)
	return &apiv1.Schema{Digest: d[:], Columns: b, MeanLength: map[string]float64{"cat_0": 2}}
}

func part(t testing.TB, name string, rows int64) *apiv1.Partition {
	footer := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, rows))
	return &apiv1.Partition{Name: name, Bytes: 8 * rows, Rows: rows, RowGroups: []int64{rows}, ContentSha256: footer[:],
		Schema: schemaOf(t, columntypes.BinarySchema()).Digest}
}

// agent returns a node's status with one drive that holds the partitions.
func agent(t testing.TB, name string, parts ...*apiv1.Partition) *apiv1.NodeStatus {
	s := &apiv1.NodeStatus{
		Name: name, Incarnation: name + "-1", Urls: []string{"http://" + name}, Protocol: apiv1.Protocol,
		ClockSeconds: 1000,
		Partitions:   parts, Schemas: []*apiv1.Schema{schemaOf(t, columntypes.BinarySchema())},
		Inventory: []byte(fmt.Sprint(name, len(parts))),
		Drives:    []*apiv1.Drive{{Name: "d", Uuid: "uuid-" + name, State: "ready", Streams: 2}},
	}
	for _, p := range parts {
		s.Drives[0].Partitions = append(s.Drives[0].Partitions, p.Name)
	}
	return s
}

// beat sends a node's heartbeat and returns the kinds of the events.
func beat(t *testing.T, f *Fleet, at time.Time, s *apiv1.NodeStatus) []Kind {
	t.Helper()
	_, events, err := f.Beat(at, 1000, proto.CloneOf(s))
	require.NoError(t, err)
	return kinds(events)
}

func kinds(events []Event) []Kind {
	var k []Kind
	for _, e := range events {
		k = append(k, e.Kind)
	}
	return k
}

func state(f *Fleet, at time.Time, name string) string {
	for _, r := range f.Records(at, false) {
		if r.Status.Name == name {
			return r.State
		}
	}
	return "not listed"
}

func TestANodesLife(t *testing.T) {
	f := New(Options{})
	s := agent(t, "n", part(t, "p0", 10))
	assert.Equal(t, []Kind{Joined, Inventory, Changed}, beat(t, f, after(0), s))
	assert.Empty(t, beat(t, f, after(1), s))
	assert.Equal(t, "ready", state(f, after(1), "n"))
	assert.Equal(t, "silent", state(f, after(4), "n"))
	assert.Empty(t, f.Tick(after(6)))
	assert.True(t, f.Alive("n"))
	assert.Equal(t, []Event{{Kind: Died, Node: "n"}}, f.Tick(after(6.1)))
	assert.Empty(t, f.Tick(after(7)))
	assert.Equal(t, "dead", state(f, after(7), "n"))
	assert.Equal(t, []Kind{Joined, Inventory}, beat(t, f, after(8), s), "it was cut off and comes back as it was")

	restarted := proto.CloneOf(s)
	restarted.Incarnation = "n-2"
	assert.Equal(t, []Kind{Restarted, Inventory, Changed}, beat(t, f, after(9), restarted))
	_, _, err := f.Beat(after(10), 1000, proto.CloneOf(s))
	assert.ErrorIs(t, err, ErrRefused)
	assert.ErrorContains(t, err, "another agent registered under this name")
	assert.Equal(t, "ready", state(f, after(10), "n"), "the one that took its place is not harmed")

	require.NoError(t, f.Drain("n", true))
	assert.Equal(t, "draining", state(f, after(10), "n"))
	assert.True(t, f.Draining("n"))
	require.NoError(t, f.Drain("n", false))
	assert.False(t, f.Draining("n"))
	assert.ErrorIs(t, f.Drain("x", true), ErrUnknown)
	f.Tick(after(20))
	assert.Equal(t, []Event{{Kind: Forgotten, Node: "n"}}, f.Tick(after(10+25*3600)))
	assert.Equal(t, "not listed", state(f, after(0), "n"))
}

// TestInventoryIsSentOnce: a beat may leave out an unchanged inventory. If a changed inventory is left out, the fleet
// asks for it.
func TestInventoryIsSentOnce(t *testing.T) {
	f := New(Options{})
	s := agent(t, "n", part(t, "p0", 10))
	bare := proto.CloneOf(s)
	bare.Partitions, bare.Schemas, bare.Drives[0].Partitions = nil, nil, nil

	a, _, err := f.Beat(after(0), 1000, proto.CloneOf(bare))
	require.NoError(t, err)
	assert.True(t, a.WantInventory)
	_, err = f.Select(nil, nil)
	assert.ErrorIs(t, err, ErrNotYet)
	assert.Equal(t, []Kind{Inventory}, beat(t, f, after(1), s))
	a, events, err := f.Beat(after(2), 1000, proto.CloneOf(bare))
	require.NoError(t, err)
	assert.False(t, a.WantInventory)
	assert.Empty(t, events)
	version := f.Version()
	assert.Equal(t, map[string][]string{"d": {Word("p0", s.Partitions[0].ContentSha256)}}, f.Words("n"))

	bare.Inventory = []byte("changed")
	a, events, err = f.Beat(after(3), 1000, proto.CloneOf(bare))
	require.NoError(t, err)
	assert.True(t, a.WantInventory)
	assert.Empty(t, events)
	assert.Len(t, f.Words("n")["d"], 1, "until it is known, what was known holds")
	assert.Equal(t, version, f.Version())
	assert.Equal(t, []Kind{Inventory}, beat(t, f, after(4), bare), "asked, it sends none: it has none")
	assert.Empty(t, f.Words("n")["d"])
	assert.Greater(t, f.Version(), version)
}

// TestAnInventoryThatWasAskedForAndLeftOutIsAskedForAgain loses the answer that requests an inventory.
func TestAnInventoryThatWasAskedForAndLeftOutIsAskedForAgain(t *testing.T) {
	f := New(Options{})
	s := agent(t, "n", part(t, "p0", 10))
	bare := proto.CloneOf(s)
	bare.Partitions, bare.Schemas = nil, nil
	for i := range 3 {
		a, events, err := f.Beat(after(float64(i)), 1000, proto.CloneOf(bare))
		require.NoError(t, err)
		assert.True(t, a.WantInventory)
		assert.NotContains(t, kinds(events), Inventory)
	}
	assert.Equal(t, []Kind{Inventory}, beat(t, f, after(4), s))
	assert.Len(t, f.Words("n")["d"], 1)
}

// TestADriveThatIsListedLaterUnderTheSameDigest: an agent sent the digest of a drive's partitions before the drive said
// that it holds them.
func TestADriveThatIsListedLaterUnderTheSameDigest(t *testing.T) {
	f := New(Options{})
	s := agent(t, "n", part(t, "p0", 10))
	early := proto.CloneOf(s)
	early.Drives[0].Partitions = nil
	assert.Equal(t, []Kind{Joined, Inventory, Changed}, beat(t, f, after(0), early))
	assert.Empty(t, f.Words("n")["d"])
	later := proto.CloneOf(s)
	later.Partitions, later.Schemas = nil, nil
	assert.Equal(t, []Kind{Inventory}, beat(t, f, after(1), later))
	assert.Len(t, f.Words("n")["d"], 1)
	assert.Empty(t, beat(t, f, after(2), later))
	assert.Len(t, f.Words("n")["d"], 1)
}

func TestADriveHasOneNode(t *testing.T) {
	f := New(Options{})
	a, b := agent(t, "a"), agent(t, "b")
	b.Drives[0].Uuid = a.Drives[0].Uuid
	beat(t, f, after(0), a)
	_, events, err := f.Beat(after(0), 1000, proto.CloneOf(b))
	assert.ErrorIs(t, err, ErrRefused)
	assert.ErrorContains(t, err, "node a's")
	assert.Equal(t, []Kind{Refused}, kinds(events))
	_, events, err = f.Beat(after(1), 1000, proto.CloneOf(b))
	assert.Error(t, err)
	assert.Empty(t, events, "said once")
	assert.Contains(t, state(f, after(1), "b"), "refused: ")
	assert.Contains(t, f.States(after(1)), "refused")
	// The drive was moved: the first node has died, or has let go of it.
	f.Tick(after(6))
	assert.Contains(t, beat(t, f, after(6), b), Joined)
	_, _, err = f.Beat(after(7), 1000, proto.CloneOf(a))
	assert.ErrorIs(t, err, ErrRefused)
	free := proto.CloneOf(b)
	free.Drives[0].Uuid = "another"
	beat(t, f, after(7), free)
	beat(t, f, after(7), a)

	twice := agent(t, "c")
	twice.Drives = append(twice.Drives, &apiv1.Drive{Name: "e", Uuid: twice.Drives[0].Uuid})
	_, _, err = f.Beat(after(7), 1000, twice)
	assert.ErrorContains(t, err, "drives d and e are one drive")
}

func TestStoredNodesComeBackAsDead(t *testing.T) {
	f := New(Options{})
	beat(t, f, after(0), agent(t, "n", part(t, "p0", 10)))
	require.NoError(t, f.Drain("n", true))
	b, ok := f.Stored("n")
	require.True(t, ok)
	assert.NotContains(t, string(b), "p0", "no lists of files are stored")
	_, ok = f.Stored("x")
	assert.False(t, ok)

	f = New(Options{})
	require.NoError(t, f.Restore(after(0), b))
	assert.Equal(t, "dead", state(f, after(0), "n"))
	assert.True(t, f.Asked("n"))
	assert.Equal(t, []Kind{Joined, Inventory}, beat(t, f, after(0), agent(t, "n", part(t, "p0", 10))),
		"as it was stored")
	assert.True(t, f.Draining("n"))
	assert.Error(t, f.Restore(after(0), []byte{0xff}))
	assert.Error(t, f.Restore(after(0), nil))
}

func TestSelection(t *testing.T) {
	f := New(Options{})
	beat(t, f, after(0), agent(t, "a", part(t, "day-1", 10), part(t, "day-2", 20)))
	beat(t, f, after(0), agent(t, "b", part(t, "day-2", 20), part(t, "day-3", 30), part(t, "week", 70)))

	s, err := f.Select([]string{"day-*"}, []string{"day-1"})
	require.NoError(t, err)
	require.Len(t, s.Manifest.Partitions, 2)
	assert.Equal(t, "day-2", s.Manifest.Partitions[0].Name)
	assert.Equal(t, [][]DriveID{{{"a", "d"}, {"b", "d"}}, {{"b", "d"}}}, s.Holders)
	assert.Equal(t, columntypes.BinarySchema(), s.Columns)
	assert.Equal(t, map[string]float64{"cat_0": 2}, s.MeanLength)
	assert.True(t, f.Holds("a", s.Manifest))
	assert.False(t, f.Holds("x", s.Manifest))

	rest, err := f.SelectNew([]string{"day-*"}, nil, func(name string) bool { return s.Manifest.Find(name) >= 0 })
	require.NoError(t, err)
	assert.Equal(t, "day-1", rest.Manifest.Partitions[0].Name)
	rest, err = f.SelectNew(nil, nil, func(string) bool { return true })
	assert.NoError(t, err)
	assert.Nil(t, rest)

	beat(t, f, after(0), agent(t, "b", part(t, "day-2", 20), part(t, "day-3", 30), part(t, "day-10", 5),
		part(t, "week", 70)))
	for _, c := range []struct{ patterns, want []string }{
		{nil, []string{"day-1", "day-2", "day-3", "day-10", "week"}},
		{[]string{"week", "day-*"}, []string{"week", "day-1", "day-2", "day-3", "day-10"}},
		{[]string{"day-3", "day-10", "day-?"}, []string{"day-3", "day-10", "day-1", "day-2"}},
	} {
		ordered, err := f.Select(c.patterns, nil)
		require.NoError(t, err)
		assert.Equal(t, c.want, partitionNames(ordered), "a list keeps its order, a pattern has the natural one")
	}

	// A replaced file is not the selected partition.
	beat(t, f, after(1), agent(t, "b", part(t, "day-3", 31)))
	assert.Equal(t, [][]DriveID{{{"a", "d"}}, nil}, f.Holders(s.Manifest))

	for says, patterns := range map[string][]string{"no live node": {"month"}, "pattern": {"["}, "1024": make([]string,
		maxPatterns+1)} {
		_, err := f.Select(patterns, nil)
		assert.ErrorIs(t, err, ErrSelect)
		assert.ErrorContains(t, err, says)
	}
}

// TestNothingIsPassedOverSilently: a partition that only a dead node holds makes a job fail, unless the node is
// drained.
func TestNothingIsPassedOverSilently(t *testing.T) {
	f := New(Options{})
	beat(t, f, after(0), agent(t, "a", part(t, "p0", 10)))
	beat(t, f, after(0), agent(t, "b", part(t, "p0", 10), part(t, "p1", 10)))
	beat(t, f, after(5), agent(t, "a", part(t, "p0", 10)))
	f.Tick(after(6))
	require.False(t, f.Alive("b"))
	_, err := f.Select(nil, nil)
	assert.ErrorIs(t, err, ErrSelect)
	assert.ErrorContains(t, err, "only node b holds p1, and it is dead")
	_, err = f.Select(nil, []string{"p1"})
	assert.NoError(t, err)
	require.NoError(t, f.Drain("b", true))
	s, err := f.Select(nil, nil)
	require.NoError(t, err)
	assert.Len(t, s.Manifest.Partitions, 1)

	// A node that a new leader has not heard of may hold anything.
	b, _ := f.Stored("b")
	f = New(Options{})
	beat(t, f, after(0), agent(t, "a", part(t, "p0", 10)))
	require.NoError(t, f.Restore(after(0), b))
	_, err = f.Select(nil, nil)
	assert.NoError(t, err, "drained")
	require.NoError(t, f.Drain("b", false))
	_, err = f.Select(nil, nil)
	assert.ErrorIs(t, err, ErrNotYet)
	assert.ErrorContains(t, err, "drain it if it is gone for good")
}

func TestPartitionsThatDisagree(t *testing.T) {
	f := New(Options{})
	beat(t, f, after(0), agent(t, "a", part(t, "p0", 10)))
	beat(t, f, after(0), agent(t, "b", part(t, "p0", 11)))
	_, err := f.Select(nil, nil)
	assert.ErrorContains(t, err, "p0 on node a and on node b are different files")

	for says, change := range map[string]func(*apiv1.NodeStatus){
		"columns of schema":  func(s *apiv1.NodeStatus) { s.Partitions[1].Schema = []byte("another") },
		"no node says what":  func(s *apiv1.NodeStatus) { s.Schemas = nil },
		"decode columns":     func(s *apiv1.NodeStatus) { s.Schemas[0].Columns = []byte("{") },
		"SHA-256":            func(s *apiv1.NodeStatus) { s.Partitions[0].ContentSha256 = []byte("short") },
		"none of its drives": func(s *apiv1.NodeStatus) { s.Drives[0].Partitions = nil },
		"manifest":           func(s *apiv1.NodeStatus) { s.Partitions[0].RowGroups = []int64{1} },
	} {
		f := New(Options{})
		s := agent(t, "a", part(t, "p0", 10), part(t, "p1", 10))
		change(s)
		beat(t, f, after(0), s)
		_, err := f.Select(nil, nil)
		assert.ErrorIs(t, err, ErrSelect)
		assert.ErrorContains(t, err, says)
	}
}

// FuzzBeat: the fleet does not fail on any report of a node, and its data set is a manifest.
func FuzzBeat(f *testing.F) {
	b, err := proto.Marshal(agent(f, "n", part(f, "p0", 10)))
	require.NoError(f, err)
	f.Add(b, b)
	f.Add([]byte{}, b)
	f.Fuzz(func(t *testing.T, one, two []byte) {
		fleet := New(Options{})
		for i, b := range [][]byte{one, two, one} {
			s := &apiv1.NodeStatus{}
			if proto.Unmarshal(b, s) != nil {
				continue
			}
			_, _, err := fleet.Beat(after(float64(i)), 1000, s)
			if err != nil {
				require.ErrorIs(t, err, ErrRefused)
			}
		}
		if s, err := fleet.Select(nil, nil); err == nil {
			_, err := s.Manifest.MarshalJSON()
			require.NoError(t, err)
			require.Len(t, s.Holders, len(s.Manifest.Partitions))
		}
		for _, r := range fleet.Records(after(3), true) {
			if kept, ok := fleet.Stored(r.Status.Name); ok {
				require.NoError(t, New(Options{}).Restore(after(0), kept))
			}
		}
		fleet.Tick(after(100))
	})
}

// TestPartitionsOfSeveralSchemas checks that the columns of partitions with several schemas are unified in the order of
// the partitions' names, whichever nodes hold them, and that a job's later partitions are unified with the job's.
func TestPartitionsOfSeveralSchemas(t *testing.T) {
	column := func(name string, kind program.Kind) columntypes.Column {
		return columntypes.Column{Name: name, Source: program.Parquet, Kind: kind}
	}
	narrow := []columntypes.Column{column("id", program.Int64), column("rate", program.Float32)}
	wide := []columntypes.Column{column("new", program.Int64), column("rate", program.Float64)}
	of := func(name string, columns []columntypes.Column) *apiv1.Partition {
		p := part(t, name, 10)
		p.Schema = schemaOf(t, columns).Digest
		return p
	}
	node := func(name string, columns []columntypes.Column, parts ...*apiv1.Partition) *apiv1.NodeStatus {
		s := agent(t, name, parts...)
		s.Schemas = []*apiv1.Schema{schemaOf(t, columns)}
		return s
	}
	for _, swap := range []bool{false, true} {
		f := New(Options{})
		names := []string{"a", "b"}
		if swap {
			names = []string{"b", "a"}
		}
		beat(t, f, after(0), node(names[0], narrow, of("p0", narrow), of("p2", narrow)))
		beat(t, f, after(0), node(names[1], wide, of("p1", wide)))
		s, err := f.Select(nil, nil)
		require.NoError(t, err)
		assert.True(t, s.Several)
		require.Len(t, s.Columns, 3)
		assert.Equal(t, columntypes.Absence{Partitions: 1, Names: "p1"}, s.Columns[0].Absent)
		assert.Equal(t, program.Float64, s.Columns[1].Kind)
		assert.Equal(t, "new", s.Columns[2].Name)
		assert.Equal(t, columntypes.Absence{Partitions: 2, Names: "p0, p2"}, s.Columns[2].Absent)

		beat(t, f, after(1), node("c", wide, of("p3", wide)))
		later, err := f.SelectNew(nil, nil, func(name string) bool { return name < "p3" })
		require.NoError(t, err)
		assert.False(t, later.Several)
		later.FollowColumns(s)
		require.Len(t, later.Columns, 3)
		assert.Equal(t, []string{"id", "rate", "new"}, []string{later.Columns[0].Name, later.Columns[1].Name,
			later.Columns[2].Name})
		assert.Equal(t, 2, later.Columns[0].Absent.Partitions)
		assert.True(t, later.Several)
	}
	f := New(Options{})
	text := node("t", columntypes.BinarySchema(), part(t, "p9", 10))
	beat(t, f, after(0), node("a", narrow, of("p0", narrow)))
	beat(t, f, after(0), text)
	_, err := f.Select(nil, nil)
	require.ErrorContains(t, err, "p0 and p9 are of different formats")
}

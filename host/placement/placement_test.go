package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drives(n, perNode int, free int64) []Drive {
	var list []Drive
	for i := range n {
		list = append(list, Drive{Ref: Ref{fmt.Sprintf("node%d", i/perNode), fmt.Sprintf("d%d", i%perNode)},
			FreeBytes: free, RowsPerSecond: 1000})
	}
	return list
}

func partitions(n int, rows int64) []Partition {
	var list []Partition
	for i := range n {
		list = append(list, Partition{Name: fmt.Sprintf("p%02d", i), Bytes: rows * 100, Rows: rows})
	}
	return list
}

// times gives partitions a number of copies.
func times(ps []Partition, copies int) []Partition {
	ps = slices.Clone(ps)
	for i := range ps {
		ps[i].Copies = copies
	}
	return ps
}

// apply makes the copies.
func apply(ds []Drive, copies []Copy) []Drive {
	for _, c := range copies {
		for i := range ds {
			if ds[i].Ref == c.To {
				ds[i].Partitions = append(ds[i].Partitions, c.Partition.Name)
				ds[i].FreeBytes -= c.Partition.Bytes
			}
		}
	}
	return ds
}

func TestSpreadEvenly(t *testing.T) {
	ds := drives(4, 2, 1<<30)
	ps := partitions(8, 1000)
	copies, err := Spread(ds, nil, times(ps, 1))
	require.NoError(t, err)
	ds = apply(ds, copies)
	for _, d := range ds {
		assert.Len(t, d.Partitions, 2, d.Ref)
	}
	r, err := Check(ds, times(ps, 1))
	require.NoError(t, err)
	assert.InDelta(t, 4000, r.RowsPerSecond, 1e-6, "four drives that end together")
	assert.Empty(t, r.Short)
}

func TestSpreadByThroughput(t *testing.T) {
	ds := drives(2, 1, 1<<30)
	ds[1].RowsPerSecond = 3000
	copies, err := Spread(ds, nil, times(partitions(8, 1000), 1))
	require.NoError(t, err)
	ds = apply(ds, copies)
	assert.Len(t, ds[0].Partitions, 2)
	assert.Len(t, ds[1].Partitions, 6, "three times as fast, three times as many rows")
}

func TestReplicasLieOnDifferentNodes(t *testing.T) {
	ds := drives(4, 2, 1<<30)
	ps := partitions(6, 1000)
	copies, err := Spread(ds, nil, times(ps, 2))
	require.NoError(t, err)
	ds = apply(ds, copies)
	r, err := Check(ds, times(ps, 2))
	require.NoError(t, err)
	assert.Equal(t, 2, r.Fewest)
	assert.Empty(t, r.OneNode)
	assert.InDelta(t, 4000, r.RowsPerSecond, 1)

	copies, err = Spread(drives(2, 2, 1<<30), nil, times(ps, 2))
	require.NoError(t, err, "with one node both copies lie there")
	r, err = Check(apply(drives(2, 2, 1<<30), copies), times(ps, 2))
	require.NoError(t, err)
	assert.Len(t, r.OneNode, 6)
}

func TestSpreadRefuses(t *testing.T) {
	ps := partitions(1, 1000)
	_, err := Spread(drives(2, 1, 1000), nil, times(ps, 1))
	require.ErrorIs(t, err, ErrRoom)
	_, err = Spread(drives(2, 1, 1<<30), nil, times(ps, 3))
	require.ErrorIs(t, err, ErrReplicas)
	require.ErrorContains(t, err, "is to have 3 copies and can have 2")
	require.ErrorContains(t, err, "there are 2 drives that take partitions: add drives, or ask for fewer copies")
	_, err = Spread(drives(2, 1, 1<<30), nil, times(ps, 0))
	require.Error(t, err)
	full := drives(2, 1, 1<<30)
	full[0].Closed, full[1].Closed = true, true
	_, err = Spread(full, nil, times(ps, 1))
	require.ErrorIs(t, err, ErrReplicas)
	held := drives(2, 1, 1<<30)
	held[1].Partitions = []string{"p00"}
	copies, err := Spread(held, ps, times(ps, 1))
	require.NoError(t, err)
	require.Empty(t, copies, "it has its copy")
	copies, err = Spread(held, ps, times(ps, 2))
	require.NoError(t, err)
	require.Len(t, copies, 1, "it lacks one")
	require.Equal(t, held[0].Ref, copies[0].To)
	_, err = Spread(append(held, held[0]), nil, times(ps, 1))
	require.ErrorContains(t, err, "two drives")
}

func TestReplicateAndRetire(t *testing.T) {
	ds := drives(3, 1, 1<<30)
	ps := partitions(3, 1000)
	for i := range ps {
		ds[0].Partitions = append(ds[0].Partitions, ps[i].Name)
	}
	copies, err := Replicate(ds, times(ps, 2))
	require.NoError(t, err)
	require.Len(t, copies, 3)
	for _, c := range copies {
		assert.Equal(t, ds[0].Ref, c.From)
		assert.NotEqual(t, ds[0].Ref, c.To)
	}
	ds = apply(ds, copies)
	none, err := Replicate(ds, times(ps, 2))
	require.NoError(t, err)
	require.Empty(t, none)

	copies, err = Retire(ds, times(ps, 2), ds[0].Ref)
	require.NoError(t, err)
	require.Len(t, copies, 3, "each of its partitions is once elsewhere, and should be twice")
	ds = apply(ds, copies)
	ds[0].Partitions = nil
	r, err := Check(ds, times(ps, 2))
	require.NoError(t, err)
	assert.Equal(t, 2, r.Fewest)

	_, err = Retire(ds, times(ps, 1), Ref{"node9", "d0"})
	require.ErrorContains(t, err, "no such drive")
	_, err = Retire(ds[:2], times(ps, 3), ds[1].Ref)
	require.ErrorIs(t, err, ErrReplicas)
	require.ErrorContains(t, err, "is to have 3 copies and can have 1: ", "the drive that goes does not count")
	_, err = Retire(ds, times(ps[:1], 1), ds[1].Ref)
	require.ErrorContains(t, err, "described")
	_, err = Replicate(ds, times(partitions(9, 1), 1))
	require.ErrorContains(t, err, "no drive")
}

func TestCheckNamesTheLast(t *testing.T) {
	ds := drives(2, 1, 1<<30)
	ps := partitions(2, 1000)
	ds[0].Partitions = []string{"p00", "p01"}
	r, err := Check(ds, times(ps, 2))
	require.NoError(t, err)
	assert.Equal(t, ds[0].Ref, r.Last)
	assert.InDelta(t, 1000, r.RowsPerSecond, 1e-6)
	assert.Equal(t, []Short{{"p00", 1, 2}, {"p01", 1, 2}}, r.Short)
	ds[1].Partitions = []string{"p01"}
	r, err = Check(ds, times(ps, 1))
	require.NoError(t, err)
	assert.InDelta(t, 2000, r.RowsPerSecond, 1e-6, "the copy takes its share of the work")
	ds[0].RowsPerSecond, ds[1].RowsPerSecond = 0, 0
	r, err = Check(ds, times(ps, 1))
	require.NoError(t, err)
	assert.Zero(t, r.RowsPerSecond, "no P is known")
}

// TestSpreadProperties: every partition gets its copies, on different drives, none beyond its room, and no drive ends
// later than greedy placement allows.
func TestSpreadProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := drives(rapid.IntRange(1, 9).Draw(t, "drives"), rapid.IntRange(1, 3).Draw(t, "per node"), 1<<40)
		for i := range ds {
			ds[i].RowsPerSecond = float64(rapid.IntRange(1, 5).Draw(t, "p")) * 1000
		}
		ps := partitions(rapid.IntRange(0, 30).Draw(t, "partitions"), 1)
		largest := 0.0
		for i := range ps {
			ps[i].Rows = int64(rapid.IntRange(0, 5000).Draw(t, "rows"))
			largest = max(largest, float64(ps[i].Rows))
		}
		replicas := rapid.IntRange(1, len(ds)).Draw(t, "replicas")
		copies, err := Spread(ds, nil, times(ps, replicas))
		require.NoError(t, err)
		require.Len(t, copies, replicas*len(ps))
		seen := map[string]bool{}
		rows, speed := 0.0, 0.0
		load := map[Ref]float64{}
		for _, c := range copies {
			key := c.To.String() + c.Partition.Name
			require.False(t, seen[key], "two copies of a partition on one drive")
			seen[key] = true
			load[c.To] += float64(c.Partition.Rows) / float64(replicas)
			rows += float64(c.Partition.Rows) / float64(replicas)
		}
		for _, d := range ds {
			speed += d.RowsPerSecond
		}
		if replicas == 1 {
			for _, d := range ds {
				// When the drive took its last partition, no other would have ended earlier with it.
				require.LessOrEqual(t, load[d.Ref]/d.RowsPerSecond, (rows+float64(len(ds)-1)*largest)/speed+1e-9)
			}
		}
		again, err := Spread(ds, nil, times(ps, replicas))
		require.NoError(t, err)
		require.Equal(t, copies, again, "the same cluster gives the same placement")
	})
}

// TestOneNodeIsSaid: a single copy lies on one node only, too; and copies that should lie on two nodes and do not are
// brought there.
func TestOneNodeIsSaid(t *testing.T) {
	ds := drives(3, 2, 1<<30) // node0: d0 and d1; node1: d0
	ds[0].Partitions = []string{"p00", "p01"}
	ds[1].Partitions = []string{"p01"}
	ps := partitions(3, 1000)
	ps[0].Copies, ps[1].Copies, ps[2].Copies = 1, 2, 2
	r, err := Check(ds, ps)
	require.NoError(t, err)
	assert.Equal(t, []string{"p00", "p01"}, r.OneNode)
	assert.Equal(t, []string{"p01"}, r.Spreadable, "p00 is to have one copy, p02 has none")
	assert.Equal(t, []Short{{"p02", 0, 2}}, r.Short, "what lies nowhere is counted")
	assert.Zero(t, r.Fewest)

	copies, err := Replicate(ds, ps[:2])
	require.NoError(t, err)
	require.Len(t, copies, 1)
	assert.Equal(t, Ref{"node1", "d0"}, copies[0].To)
	ds = apply(ds, copies)
	copies, err = Replicate(ds, ps[:2])
	require.NoError(t, err)
	assert.Empty(t, copies)
	r, err = Check(ds, ps[:2])
	require.NoError(t, err)
	assert.Empty(t, r.Short)
	assert.Empty(t, r.Spreadable)
	assert.Equal(t, []string{"p00"}, r.OneNode)

	for name, other := range map[string]func(*Drive){
		"another node without room":    func(d *Drive) { d.FreeBytes = 0 },
		"another node that is closed":  func(d *Drive) { d.Closed = true },
		"no other node with its drive": func(d *Drive) { d.Node = "node0"; d.Ref.Drive = "d2" },
	} {
		ds := drives(3, 2, 1<<30)
		ds[0].Partitions, ds[1].Partitions = []string{"p01"}, []string{"p01"}
		other(&ds[2])
		copies, err := Replicate(ds, ps[1:2])
		require.NoError(t, err, name)
		assert.Empty(t, copies, name)
	}
}

// TestRetireKeepsEachPartitionsNumber checks that Retire keeps each partition's own number of copies.
func TestRetireKeepsEachPartitionsNumber(t *testing.T) {
	ds := drives(4, 1, 1<<30)
	ps := partitions(3, 1000)
	for i := range ps {
		ps[i].Copies = i // 0 is 1: data are never dropped
		ds[0].Partitions = append(ds[0].Partitions, ps[i].Name)
	}
	ds[1].Partitions = []string{"p02"}
	copies, err := Retire(ds, ps, ds[0].Ref)
	require.NoError(t, err)
	made := map[string]int{}
	for _, c := range copies {
		made[c.Partition.Name]++
	}
	assert.Equal(t, map[string]int{"p00": 1, "p01": 1, "p02": 1}, made)
}

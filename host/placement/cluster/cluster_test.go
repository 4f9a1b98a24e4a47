package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
)

type row struct {
	Label int32 `parquet:"label"`
	Cat   int64 `parquet:"cat_0"`
}

// file writes a Parquet file of a given number of rows.
func file(t *testing.T, seed uint64, rows int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	all := make([]row, rows)
	for i := range all {
		all[i] = row{int32(rng.IntN(2)), rng.Int64()}
	}
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, all))
	path := filepath.Join(t.TempDir(), "f.parquet")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// startNode runs a node with a given number of empty drives.
func startNode(t *testing.T, name string, drives int) *node.Agent {
	t.Helper()
	c := node.DefaultConfig()
	c.Name, c.Listen, c.Measure, c.StateDir = name, []string{"127.0.0.1:0"}, node.Duration(time.Millisecond),
		t.TempDir()
	for i := range drives {
		uri := "file:" + filepath.Join(t.TempDir(), "d.flash")
		dev, err := sdk.Create(t.Context(), uri+"?size=8MiB&slm=32MiB", sdk.DeviceOptions{})
		require.NoError(t, err)
		require.NoError(t, dev.Close())
		c.Drives = append(c.Drives, node.DriveConfig{Name: "d" + string(rune('0'+i)), URI: uri})
	}
	a, err := node.Start(t.Context(), c, node.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	return a
}

// open asks nodes for what a control plane would list, once all their drives are in one of the states.
func open(t *testing.T, states []string, agents ...*node.Agent) *Cluster {
	t.Helper()
	client, err := identity.HTTPClient(identity.Options{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	var list []*apiv1.NodeRecord
	for _, a := range agents {
		base, err := identity.BaseURL(a.URLs()[0])
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			r, err := apiv1connect.NewNodeClient(client, base).Describe(t.Context(), &apiv1.DescribeRequest{})
			if err != nil {
				return false
			}
			for _, d := range r.Status.Drives {
				if !slices.Contains(states, d.State) {
					return false
				}
			}
			list = append(list, &apiv1.NodeRecord{State: "ready", Status: r.Status})
			return true
		}, time.Minute, 10*time.Millisecond)
	}
	c, err := Open(list, nil, identity.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

var ready, draining = []string{"ready"}, []string{"ready", "draining"}

// TestPlaceReplicateRetireVerify is the life of a data set on two nodes of two drives each.
func TestPlaceReplicateRetireVerify(t *testing.T) {
	n0, n1 := startNode(t, "n0", 2), startNode(t, "n1", 2)
	c := open(t, ready, n0, n1)
	paths := map[string]string{"day/p0": file(t, 1, 500), "day/p1": file(t, 2, 700), "day/p2": file(t, 3, 300)}
	var fresh []placement.Partition
	for name, path := range paths {
		f, err := OpenFile(t.Context(), source.ParseLocation(path), name, Format{})
		require.NoError(t, err)
		fresh = append(fresh, placement.Partition{Name: name, Bytes: f.Bytes, Rows: f.Rows, Copies: 1})
		require.NoError(t, f.Close())
	}
	copies, err := placement.Spread(c.Drives(), c.Partitions(nil), fresh)
	require.NoError(t, err)
	openFile := func(name string) (*File, error) {
		return OpenFile(t.Context(), source.ParseLocation(paths[name]), name, Format{})
	}
	told := 0
	require.NoError(t, c.Carry(t.Context(), copies, openFile, func(_ placement.Copy, err error) {
		assert.NoError(t, err)
		told++
	}))
	assert.Equal(t, 3, told)
	require.NoError(t, c.Carry(t.Context(), copies, openFile, nil), "putting the same again changes nothing")

	c = open(t, ready, n0, n1)
	require.Len(t, c.Partitions(nil), 3)
	copies, err = placement.Replicate(c.Drives(), c.Numbered(c.Partitions(nil), 2, nil))
	require.NoError(t, err)
	require.Len(t, copies, 3)
	require.NoError(t, c.Carry(t.Context(), copies, nil, nil))

	c = open(t, ready, n0, n1)
	for name, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		want := sha256.Sum256(b)
		holders := c.Holders(name)
		require.Len(t, holders, 2)
		assert.NotEqual(t, holders[0].Node, holders[1].Node, "copies lie on different nodes")
		for _, r := range holders {
			s, err := c.Verify(t.Context(), r, name)
			require.NoError(t, err)
			assert.Equal(t, want[:], s.SHA256)
			assert.Equal(t, want[:], s.Kept, "kept since it was put there")
			assert.EqualValues(t, len(b), s.Bytes)
		}
	}

	gone := c.Holders("day/p0")[0]
	require.NoError(t, c.Settle(t.Context(), gone))
	c = open(t, draining, n0, n1)
	copies, err = placement.Retire(c.Drives(), c.Numbered(c.Partitions(nil), 2, nil), gone)
	require.NoError(t, err)
	require.NotEmpty(t, copies)
	require.NoError(t, c.Carry(t.Context(), copies, nil, nil))
	_, err = c.Drain(t.Context(), gone, false)
	require.NoError(t, err)
	c = open(t, ready, n0, n1)
	assert.Len(t, c.Holders("day/p0"), 3)
}

// TestCarryGoesOn checks that a copy that fails does not keep the others from being made.
func TestCarryGoesOn(t *testing.T) {
	n := startNode(t, "n0", 2)
	c := open(t, ready, n)
	good := file(t, 1, 100)
	part := func(name string) placement.Partition { return placement.Partition{Name: name} }
	var mu sync.Mutex
	var failed, made []string
	err := c.Carry(t.Context(), []placement.Copy{
		{Partition: part("bad"), To: placement.Ref{Node: "n0", Drive: "d0"}},
		{Partition: part("good"), To: placement.Ref{Node: "n0", Drive: "d0"}},
		{Partition: part("good"), To: placement.Ref{Node: "n0", Drive: "d9"}},
		{Partition: part("good"), To: placement.Ref{Node: "n9", Drive: "d0"}},
		{Partition: part("good"), From: placement.Ref{Node: "n0", Drive: "d7"},
			To: placement.Ref{Node: "n0", Drive: "d1"}},
	}, func(name string) (*File, error) {
		if name == "bad" {
			return nil, errors.New("no such file here")
		}
		return OpenFile(t.Context(), source.ParseLocation(good), name, Format{})
	}, func(k placement.Copy, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = append(failed, k.To.String())
		} else {
			made = append(made, k.To.String())
		}
	})
	require.ErrorContains(t, err, "no such file here")
	require.ErrorContains(t, err, "d9")
	require.ErrorContains(t, err, "n9 does not answer")
	assert.Len(t, failed, 4)
	assert.Equal(t, []string{"n0/d0"}, made)
}

// TestPutRefuses checks that bytes that differ from their description do not become a partition.
func TestPutRefuses(t *testing.T) {
	n := startNode(t, "n0", 1)
	c := open(t, ready, n)
	to := placement.Ref{Node: "n0", Drive: "d0"}
	path := file(t, 1, 100)
	for name, lie := range map[string]func(*File){
		"digest": func(f *File) { f.sha256[0]++ },
		"footer": func(f *File) { f.Content[0]++ },
		"rows":   func(f *File) { f.Rows++ },
		"runs":   func(f *File) { f.runs[0].From++ },
	} {
		t.Run(name, func(t *testing.T) {
			f, err := OpenFile(t.Context(), source.ParseLocation(path), "p-"+name, Format{})
			require.NoError(t, err)
			defer f.Close()
			lie(f)
			require.Error(t, c.put(t.Context(), to, f))
		})
	}
	_, err := OpenFile(t.Context(), source.ParseLocation(filepath.Join(t.TempDir(), "none")), "x", Format{})
	require.ErrorIs(t, err, os.ErrNotExist)
	junk := filepath.Join(t.TempDir(), "junk")
	require.NoError(t, os.WriteFile(junk, []byte("not a parquet file at all"), 0o600))
	_, err = OpenFile(t.Context(), source.ParseLocation(junk), "x", Format{})
	require.Error(t, err)
	_, err = c.Verify(t.Context(), to, "nothing")
	require.Error(t, err)
}

func TestOpenRefuses(t *testing.T) {
	_, err := Open(nil, nil, identity.Options{})
	require.ErrorContains(t, err, "nodes list")
	two := func(footer string) *apiv1.NodeRecord {
		return &apiv1.NodeRecord{State: "ready",
			Status: &apiv1.NodeStatus{Name: "n" + footer,
				Partitions: []*apiv1.Partition{{Name: "p", ContentSha256: []byte(footer)}},
				Drives:     []*apiv1.Drive{{Name: "d"}}}}
	}
	_, err = Open([]*apiv1.NodeRecord{two("a"), two("b")}, nil, identity.Options{})
	require.ErrorContains(t, err, "another file of the name")
	c, err := Open([]*apiv1.NodeRecord{two("a"), {State: "dead", Status: two("b").Status}}, nil, identity.Options{})
	require.NoError(t, err)
	assert.Len(t, c.Drives(), 1, "a dead node takes no part")
}

// TestADescriptionFitsItsHeader checks that a partition of very many row groups is described without them.
func TestADescriptionFitsItsHeader(t *testing.T) {
	p := dataset.Partition{Name: "p.parquet", Bytes: 1 << 40, Rows: 1 << 30, RowGroups: []int64{1, 2, 3},
		Content: dataset.Digest{7}}
	for groups, kept := range map[int]bool{3: true, 1000: true, 100_000: false} {
		p.RowGroups = make([]int64, groups)
		b, err := descriptionHeader(p)
		require.NoError(t, err)
		require.LessOrEqual(t, len(b), apiv1.MaxPartitionHeader)
		var back dataset.Partition
		require.NoError(t, json.Unmarshal(b, &back))
		want := p
		if !kept {
			want.RowGroups = nil
		}
		require.Equal(t, want, back)
	}
}

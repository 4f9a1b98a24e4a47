package cluster

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk"
)

// listed opens a cluster of one node that lists drives.
func listed(t *testing.T, state string, drives ...*apiv1.Drive) *Cluster {
	t.Helper()
	c, err := Open([]*apiv1.NodeRecord{{State: "ready", Status: &apiv1.NodeStatus{Name: "n", Draining: state == "draining",
		Drives: drives}}}, nil, identity.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestRegionsAreOneDriveToPlacement: the regions of a drive are one place for copies, with the room of one drive and
// the P of all its regions. Copies go through a region that is ready.
func TestRegionsAreOneDriveToPlacement(t *testing.T) {
	region := func(number uint32, state string, p map[string]float64, partitions ...string) *apiv1.Drive {
		return &apiv1.Drive{Name: fmt.Sprint("r", number), Uuid: "u", Region: number, Regions: 3, State: state,
			FreeBytes: 1000, PRowsPerSecond: p, Partitions: partitions}
	}
	ref := func(drive string) placement.Ref { return placement.Ref{Node: "n", Drive: drive} }
	c := listed(t, "", region(0, "failed: x", nil), region(1, "ready", map[string]float64{"a": 10, "b": 30}, "p", "q"),
		&apiv1.Drive{Name: "d", Uuid: "v", State: "ready", FreeBytes: 1 << 20},
		region(2, "draining", map[string]float64{"a": 40}, "p", "r"))
	assert.Equal(t, []placement.Drive{
		{Ref: ref("r0"), FreeBytes: 1000, RowsPerSecond: 90, Partitions: []string{"p", "q", "r"}},
		{Ref: ref("d"), FreeBytes: 1 << 20},
	}, c.Drives())
	assert.Equal(t, []placement.Ref{ref("r0")}, c.Holders("p"), "one copy")
	for _, name := range []string{"r0", "r1", "r2"} {
		assert.Equal(t, ref("r0"), c.Whole(ref(name)))
		assert.Equal(t, []placement.Ref{ref("r0"), ref("r1"), ref("r2")}, c.Regions(ref(name)))
		assert.Equal(t, ref("r1"), c.via(ref(name), "p"))
		assert.Equal(t, ref("r1"), c.via(ref(name), "new"))
	}
	assert.Equal(t, []placement.Ref{ref("d")}, c.Regions(ref("d")))
	for _, r := range []placement.Ref{ref("none"), {Node: "m", Drive: "r0"}} {
		assert.Equal(t, r, c.Whole(r))
		assert.Equal(t, []placement.Ref{r}, c.Regions(r))
		assert.Equal(t, r, c.via(r, "p"))
	}
	_, err := placement.Replicate(c.Drives(), []placement.Partition{{Name: "p", Copies: 3}})
	require.ErrorIs(t, err, placement.ErrReplicas, "there are two drives")

	closed := listed(t, "", region(0, "failed: x", nil), region(1, "draining", nil))
	assert.True(t, closed.Drives()[0].Closed)
	assert.Zero(t, closed.Drives()[0].RowsPerSecond)
	assert.Equal(t, ref("r1"), closed.via(ref("r1"), "p"), "no region is ready: the answer says why")
	apart := listed(t, "", region(0, "ready", nil, "p"), region(1, "ready", nil, "q"))
	assert.Equal(t, ref("r1"), apart.via(ref("r0"), "q"), "members of the configuration may differ")
	assert.True(t, listed(t, "draining", region(0, "ready", nil)).Drives()[0].Closed)
	unnamed := listed(t, "", &apiv1.Drive{Name: "a"}, &apiv1.Drive{Name: "b"})
	assert.Len(t, unnamed.Drives(), 2, "drives without a UUID")
}

// TestPlacingOnADriveOfRegions: a file that is placed on a drive of regions is in all of them, a second copy goes to
// another drive, and retiring any region drains all.
func TestPlacingOnADriveOfRegions(t *testing.T) {
	uri := "file:" + filepath.Join(t.TempDir(), "d.flash")
	dev, err := sdk.Create(t.Context(), uri+"?size=8MiB&regions=2", sdk.DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	conf := node.DefaultConfig()
	conf.Name, conf.Listen, conf.Measure = "n0", []string{"127.0.0.1:0"}, node.Duration(time.Millisecond)
	for region := range 2 {
		conf.Drives = append(conf.Drives, node.DriveConfig{Name: fmt.Sprint("r", region),
			URI: fmt.Sprintf("%s?slm=64MiB&region=%d", uri, region)})
	}
	n0, err := node.Start(t.Context(), conf, node.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, n0.Close()) })
	n1 := startNode(t, "n1", 1)
	c := open(t, ready, n0, n1)
	require.Len(t, c.Drives(), 2)
	r0, r1, d0 := placement.Ref{Node: "n0", Drive: "r0"}, placement.Ref{Node: "n0", Drive: "r1"},
		placement.Ref{Node: "n1", Drive: "d0"}
	path := file(t, 1, 500)
	openFile := func(name string) (*File, error) {
		return OpenFile(t.Context(), source.ParseLocation(path), name, Format{})
	}
	toRegion := []placement.Copy{{Partition: placement.Partition{Name: "p"}, To: r0}}
	require.NoError(t, c.Carry(t.Context(), toRegion, openFile, nil))
	c = open(t, ready, n0, n1)
	require.Equal(t, []placement.Ref{r0}, c.Holders("p"))
	copies, err := placement.Replicate(c.Drives(), c.Numbered(c.Partitions(nil), 2, nil))
	require.NoError(t, err)
	require.Len(t, copies, 1)
	assert.Equal(t, d0, copies[0].To)
	require.NoError(t, c.Carry(t.Context(), copies, nil, nil))
	for _, r := range []placement.Ref{r0, r1, d0} {
		s, err := c.Verify(t.Context(), r, "p")
		require.NoError(t, err)
		assert.Equal(t, s.Kept, s.SHA256)
	}

	require.NoError(t, c.Settle(t.Context(), r1))
	c = open(t, draining, n0, n1)
	assert.True(t, c.Drives()[0].Closed, "all regions of the drive are drained")
	_, err = placement.Retire(c.Drives(), c.Numbered(c.Partitions(nil), 1, nil), c.Whole(r1))
	require.NoError(t, err, "the other node has a copy")
}

package controller

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// regionWindow is the share of a region in the memory of a drive of testRegions regions.
const (
	testRegions  = 4
	regionWindow = testSLM / testRegions
)

// withRegions makes a drive one of several regions.
func withRegions(n int) func(*Options) {
	return func(o *Options) { o.Compute.(*stubCompute).slots.regions = n }
}

// inRegion builds a Preprocess in a region over ranges, with its data.
func inRegion(t testing.TB, region int, p cs.Preprocess) (nvme.Command, []byte) {
	b, err := p.Marshal()
	require.NoError(t, err)
	return cs.InRegion(cs.PreprocessCommand(uint32(len(b))), region), b
}

// standard makes a command of the standard set address a region.
func standard(c nvme.Command, region int) nvme.Command {
	c.SetNSID(cs.RegionNamespace(region))
	return c
}

func TestTheNumberOfRegionsIsBounded(t *testing.T) {
	for _, n := range []int{-1, cs.MaxRegions + 1} {
		c := newStub(testSLM)
		c.slots.regions = n
		_, err := New(Options{Compute: c})
		require.ErrorContains(t, err, "regions: 1 to 7 are possible")
	}
	for n, want := range map[int][]uint32{0: {1, 2, 3}, 1: {1, 2, 3}, 7: {1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		d := newDrive(t, withRegions(n))
		b := make([]byte, nvme.IdentifySize)
		c := d.connect()
		admin(t, c, nvme.Identify(nvme.CNSActiveNamespaces, 0, 0), b, nvme.Success)
		assert.Equal(t, want, nvme.UnmarshalNamespaceList(b))
		last := want[len(want)-1]
		admin(t, c, nvme.Identify(nvme.CNSSetNamespace, last, nvme.CSICompute), b, nvme.Success)
		admin(t, c, nvme.Identify(nvme.CNSSetNamespace, last+1, nvme.CSICompute), b, nvme.InvalidNamespace)
	}
}

// TestRegionsHaveTheirWeightOfTheMemory: a reservation ends where the window of the region does.
func TestRegionsHaveTheirWeightOfTheMemory(t *testing.T) {
	for says, weights := range map[string][]int{
		"2 weights for 3 regions": {1, 1}, "4 weights": {1, 1, 1, 1}, "region 1 of weight 0": {1, 0, 1},
		"region 2 of weight 17": {1, 1, cs.MaxRegionWeight + 1},
	} {
		c := newStub(testSLM)
		c.slots.regions, c.slots.weights = 3, weights
		_, err := New(Options{Compute: c})
		require.ErrorContains(t, err, says)
	}
	d := newDrive(t, withRegions(3), func(o *Options) { o.Compute.(*stubCompute).slots.weights = []int{1, 2, 1} })
	c := d.connect()
	for region, want := range []cs.Range{{Len: testSLM / 4}, {Addr: testSLM / 4, Len: testSLM / 2},
		{Addr: 3 * testSLM / 4, Len: testSLM / 4}} {
		admin(t, c, cs.InRegion(cs.SLMReserve(cs.AnyAddress, want.Len+4096), region), nil, nvme.InsufficientResources)
		out := admin(t, c, cs.InRegion(cs.SLMReserve(cs.AnyAddress, want.Len), region), nil, nvme.Success)
		assert.Equal(t, want.Addr, out.Result())
	}
}

func TestAddedNamespacesBeginBehindTheRegions(t *testing.T) {
	d := newDrive(t, withRegions(3))
	_, err := d.ChangeNamespaces(nil, []Namespace{{NSID: 5, Flash: newFlash(4096)}})
	require.ErrorContains(t, err, "from 6 to 128")
	ids, err := d.ChangeNamespaces(nil, []Namespace{{Flash: newFlash(4096)}})
	require.NoError(t, err)
	assert.Equal(t, []uint32{6}, ids)
	_, err = d.ChangeNamespaces([]uint32{5}, nil)
	require.ErrorIs(t, err, ErrNoNamespace)
}

// TestARegionHasOneOwner: a host that names memory, a program or a region of another host is stopped, with either
// command set.
func TestARegionHasOneOwner(t *testing.T) {
	d := newDrive(t, withRegions(testRegions))
	a, b := d.connect(), d.connect()
	mine := reserve(t, a, 4096)
	require.Zero(t, mine, "region 0 has the first window")
	admin(t, b, cs.SLMReserve(cs.AnyAddress, 4096), nil, nvme.AccessDenied)
	admin(t, b, cs.SLMReserve(8192, 4096), nil, nvme.AccessDenied)

	out := admin(t, b, cs.InRegion(cs.SLMReserve(cs.AnyAddress, 8192), 2), nil, nvme.Success)
	at := out.Result()
	require.EqualValues(t, 2*regionWindow, at)
	for addr, want := range map[uint64]nvme.Status{
		2*regionWindow - 4096: nvme.LBAOutOfRange, 3*regionWindow - 4096: nvme.Success, 3 * regionWindow: nvme.LBAOutOfRange,
	} {
		admin(t, b, cs.InRegion(cs.SLMReserve(addr, 4096), 2), nil, want)
	}
	admin(t, b, cs.InRegion(cs.SLMReserve(cs.AnyAddress, regionWindow), 3), nil, nvme.Success)
	admin(t, b, cs.InRegion(cs.SLMReserve(cs.AnyAddress, 4096), 3), nil, nvme.InsufficientResources)
	admin(t, b, cs.InRegion(cs.SLMReserve(cs.AnyAddress, 4096), testRegions), nil, nvme.InvalidField)

	page := make([]byte, 4096)
	io(t, b, cs.Fetch(mine, 4096), page, nvme.AccessDenied)
	io(t, b, cs.Store(mine, 4096), page, nvme.AccessDenied)
	io(t, b, cs.MemoryWrite(mine, 4096), page, nvme.AccessDenied)
	own := []cs.Range{{Addr: at, Len: 4096}, {Addr: at + 4096, Len: 4096}}
	for name, test := range map[string]struct {
		region int
		p      cs.Preprocess
		want   nvme.Status
	}{
		"its own":                      {2, cs.Preprocess{Ranges: own}, nvme.Success},
		"a range of no bytes anywhere": {2, cs.Preprocess{Ranges: append(own[:2:2], cs.Range{})}, nvme.Success},
		"memory of the other host":     {2, cs.Preprocess{Ranges: []cs.Range{{Addr: mine, Len: 4096}}}, nvme.AccessDenied},
		"region of the other host":     {0, cs.Preprocess{Ranges: own}, nvme.AccessDenied},
		"both of the other host":       {0, cs.Preprocess{Ranges: []cs.Range{{Addr: mine, Len: 4096}}}, nvme.AccessDenied},
		"memory of another own region": {2, cs.Preprocess{Ranges: []cs.Range{{Addr: 3 * regionWindow, Len: 512}}},
			nvme.AccessDenied},
		"memory of two regions": {2, cs.Preprocess{Ranges: []cs.Range{{Addr: 3*regionWindow - 512, Len: 1024}}},
			nvme.AccessDenied},
		"blocks to the other host": {2, cs.Preprocess{Ranges: own, Copies: []cs.Copy{{NSID: 1, NLB: 1, Dest: mine}}},
			nvme.AccessDenied},
		"blocks to another own region": {2, cs.Preprocess{Ranges: own, Copies: []cs.Copy{{NSID: 1, NLB: 1,
			Dest: 3 * regionWindow}}}, nvme.AccessDenied},
		"nothing but time of the other host's region": {0, cs.Preprocess{}, nvme.AccessDenied},
		"no such region": {testRegions, cs.Preprocess{Ranges: own}, nvme.InvalidField},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, data := inRegion(t, test.region, test.p)
			io(t, b, cmd, data, test.want)
			if test.region < testRegions && len(test.p.Copies) == 0 {
				e, err := cs.Execute(0, test.p.Ranges, nil)
				require.NoError(t, err)
				io(t, b, standard(e.Command, test.region), e.Data, test.want)
			}
		})
	}
	admin(t, b, cs.InRegion(cs.ImageActivate(1), testRegions), nil, nvme.InvalidField)
	require.NoError(t, a.Close())
	admin(t, b, cs.SLMReserve(cs.AnyAddress, 4096), nil, nvme.Success)
}

// TestARangeSetBelongsToARegion: no other region executes over it, lists it or deletes it.
func TestARangeSetBelongsToARegion(t *testing.T) {
	c := newDrive(t, withRegions(testRegions)).connect()
	set, err := cs.CreateRangeSet([]cs.Range{{Addr: regionWindow, Len: 4096}})
	require.NoError(t, err)
	admin(t, c, set.Command, set.Data, nvme.AccessDenied)
	admin(t, c, standard(set.Command, testRegions), set.Data, nvme.InvalidNamespace)
	created := admin(t, c, standard(set.Command, 1), set.Data, nvme.Success)
	id := uint16(created.DW0())
	e := cs.ExecuteSet(0, id, []byte("args"))
	io(t, c, e.Command, e.Data, nvme.InvalidMemoryRangeSetID)
	io(t, c, standard(e.Command, 1), e.Data, nvme.Success)
	for nsid, want := range map[uint32]int{cs.NamespaceCompute: 0, cs.RegionNamespace(1): 1, nvme.AllNamespaces: 1} {
		b := make([]byte, 4096)
		admin(t, c, nvme.GetLog(nvme.LogMemoryRangeSets, nsid, 0, 4096), b, nvme.Success)
		assert.EqualValues(t, want, binary.LittleEndian.Uint32(b), "namespace %d", nsid)
	}
	admin(t, c, cs.DeleteRangeSet(id), nil, nvme.InvalidMemoryRangeSetID)
	admin(t, c, standard(cs.DeleteRangeSet(id), 1), nil, nvme.Success)
}

// heldRegions is a device whose executions report their region and wait there for a value.
type heldRegions struct {
	*stubCompute
	began chan int
	end   [testRegions]chan struct{}
}

func (h *heldRegions) Execute(ctx context.Context, x Execution) (uint64, nvme.Status) {
	h.began <- x.Region
	<-h.end[x.Region]
	return h.stubCompute.Execute(ctx, x)
}

// TestARegionIsSwitchedWhileOthersExecute: the activation waits for nobody and hinders nobody but its own region's
// host.
func TestARegionIsSwitchedWhileOthersExecute(t *testing.T) {
	h := &heldRegions{stubCompute: newStub(testSLM), began: make(chan int)}
	for i := range h.end {
		h.end[i] = make(chan struct{})
	}
	h.slots.regions = testRegions
	d := newDrive(t, func(o *Options) { o.Compute = h })
	a, b := d.connect(), d.connect()
	for slot := uint16(1); slot <= 2; slot++ {
		admin(t, a, cs.ImageDownload(cs.Chunk{Slot: slot, Size: 4, Len: 4}), make([]byte, 4), nvme.Success)
	}
	var running sync.WaitGroup
	run := func(c nvme.Conn, region int) {
		cmd, data := inRegion(t, region, cs.Preprocess{})
		running.Go(func() {
			_, err := c.IO(context.Background(), &cmd, data)
			assert.NoError(t, err)
		})
		require.Equal(t, region, <-h.began)
	}
	admin(t, a, cs.SLMReserve(cs.AnyAddress, 4096), nil, nvme.Success)
	run(a, 0)
	run(a, 3)
	admin(t, b, cs.InRegion(cs.ImageActivate(1), 2), nil, nvme.Success)
	admin(t, b, standard(cs.Activation(1, true), 1), nil, nvme.ProgramsActivatedExceeded)
	admin(t, b, standard(cs.Activation(0, false), 1), nil, nvme.Success)
	admin(t, b, standard(cs.Activation(1, true), 1), nil, nvme.Success)
	admin(t, b, standard(cs.Activation(1, true), testRegions), nil, nvme.InvalidNamespace)
	run(b, 2)
	admin(t, b, cs.ImageActivate(1), nil, nvme.ProgramInUse) // the other host executes there and holds memory
	admin(t, a, cs.ImageActivate(1), nil, nvme.ProgramInUse) // the owner executes there
	h.end[0] <- struct{}{}
	h.end[2] <- struct{}{}
	h.end[3] <- struct{}{}
	running.Wait()
	admin(t, b, cs.ImageActivate(1), nil, nvme.ProgramInUse) // the other host holds memory
	admin(t, b, cs.Activation(0, false), nil, nvme.ProgramInUse)
	admin(t, a, cs.ImageActivate(2), nil, nvme.Success) // the region is the owner's to switch

	admin(t, a, cs.ImageDownload(cs.Chunk{Slot: 1, Size: 4, Len: 4}), make([]byte, 4), nvme.ProgramInUse)
	for nsid, want := range map[uint32][]int{3: {2}, 4: {1}, 5: {1}, 6: {0}, nvme.AllNamespaces: {0, 1, 2}} {
		b := make([]byte, 4096)
		admin(t, a, nvme.GetLog(nvme.LogPrograms, nsid, 0, 4096), b, nvme.Success)
		list, err := cs.UnmarshalPrograms(b)
		require.NoError(t, err)
		var active []int
		for i := range list {
			if list[i].Active {
				active = append(active, i)
			}
		}
		assert.Equal(t, want, active, "namespace %d", nsid)
	}
}

// TestRegionsOfADriveWithoutFlash: vendor commands go to the first namespace of programs, or to the region's own.
func TestRegionsOfADriveWithoutFlash(t *testing.T) {
	d := newDrive(t, withRegions(2), func(o *Options) { o.Flash = nil })
	c := d.connect()
	cmd, data := inRegion(t, 1, cs.Preprocess{})
	cmd.SetNSID(cs.NamespaceCompute)
	io(t, c, cmd, data, nvme.Success)
	io(t, c, standard(cmd, 1), data, nvme.Success)
	cmd, data = inRegion(t, 0, cs.Preprocess{})
	io(t, c, standard(cmd, 1), data, nvme.InvalidField)
}

package controller

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

func TestReservationsOfTwoAssociationsAreApart(t *testing.T) {
	d := newDrive(t)
	a, b := d.connect(), d.connect()
	atA, atB := reserve(t, a, 64<<10), reserve(t, b, 64<<10)
	require.NotEqual(t, atA, atB)
	secret := pattern(64<<10, 1)
	io(t, a, cs.Store(atA, 64<<10), secret, nvme.Success)
	buf := make([]byte, 512)
	for _, test := range []struct {
		name   string
		caller nvme.Conn
		cmd    nvme.Command
	}{
		{"fetch", b, cs.Fetch(atA, 512)},
		{"store", b, cs.Store(atA, 512)},
		{"read", b, cs.MemoryRead(atA, 512)},
		{"write", b, cs.MemoryWrite(atA, 512)},
		{"the second half is the other's", a, cs.Store(atA+64<<10-256, 512)},
	} {
		t.Run(test.name, func(t *testing.T) { io(t, test.caller, test.cmd, buf, nvme.AccessDenied) })
	}
	io(t, b, cs.MemoryFill(atA, 512, 0), nil, nvme.AccessDenied)
	src := cs.MemorySource{NSID: 2, Addr: atA, Len: 512}.AppendTo(nil)
	io(t, b, cs.MemoryCopy{Len: 512, Dest: atB, Sources: 1, Format: cs.CopyFormatMemory}.Command(), src, nvme.AccessDenied)
	blk := cs.BlockSource{NSID: 1, Blocks: 1}.AppendTo(nil)
	io(t, b, cs.MemoryCopy{Len: 512, Dest: atA, Sources: 1, Format: cs.CopyFormatBlocks}.Command(), blk, nvme.AccessDenied)
	preprocess(t, b, cs.Preprocess{Ranges: []cs.Range{{Addr: atA, Len: 1}}}, nvme.AccessDenied)
	preprocess(t, b, cs.Preprocess{Copies: []cs.Copy{{NSID: 1, NLB: 1, Dest: atA}}}, nvme.AccessDenied)
	execute(t, b, 0, []cs.Range{{Addr: atA, Len: 1}}, nil, nvme.AccessDenied)
	admin(t, b, cs.SLMRelease(atA, 64<<10), nil, nvme.AccessDenied)
	_, ok := b.(nvme.Mapper).MapSLM(atA, 1)
	assert.False(t, ok)
	_, ok = a.(nvme.Mapper).MapSLM(atA, 64<<10)
	assert.True(t, ok)
	assert.Equal(t, secret, d.compute.slm[atA:atA+64<<10], "nobody touched a byte of it")

	require.NoError(t, a.Close())
	admin(t, b, cs.SLMReserve(atA, 64<<10), nil, nvme.Success)
	got := make([]byte, 64<<10)
	io(t, b, cs.Fetch(atA, 64<<10), got, nvme.Success)
	assert.Equal(t, make([]byte, 64<<10), got, "what the other association left is cleared")
}

func TestReserveAtItsLimits(t *testing.T) {
	c := newDrive(t).connect()
	const page = cs.ReserveGranularity
	for _, test := range []struct {
		name            string
		address, length uint64
		want            nvme.Status
	}{
		{"nothing", 0, 0, nvme.InvalidField},
		{"odd length", 0, page + 1, nvme.InvalidField},
		{"odd address", 1, page, nvme.InvalidField},
		{"past the end", testSLM - page, 2 * page, nvme.LBAOutOfRange},
		{"wraps", ^uint64(page - 1), page, nvme.LBAOutOfRange},
		{"more than there is, anywhere", cs.AnyAddress, testSLM + page, nvme.InsufficientResources},
		{"last page", testSLM - page, page, nvme.Success},
		{"the same again", testSLM - page, page, nvme.OverlappingMemoryRanges},
		{"around it", testSLM - 2*page, 2 * page, nvme.OverlappingMemoryRanges},
		{"one page more than is left, anywhere", cs.AnyAddress, testSLM, nvme.InsufficientResources},
		{"all that is left, anywhere", cs.AnyAddress, testSLM - page, nvme.Success},
		{"nothing is left", cs.AnyAddress, page, nvme.InsufficientResources},
	} {
		t.Run(test.name, func(t *testing.T) { admin(t, c, cs.SLMReserve(test.address, test.length), nil, test.want) })
	}
	admin(t, c, cs.SLMRelease(0, page), nil, nvme.AccessDenied) // not as it was reserved
	admin(t, c, cs.SLMRelease(0, testSLM-page), nil, nvme.Success)
	admin(t, c, cs.SLMRelease(0, testSLM-page), nil, nvme.AccessDenied)
}

// TestAnAssociationIsUsedWhileItsRangeSetIsMade checks that other commands of the association, and what its transport
// asks, do not wait for the memory of a range set to be cleared.
func TestAnAssociationIsUsedWhileItsRangeSetIsMade(t *testing.T) {
	d := newDrive(t)
	before := d.connect()
	at := reserve(t, before, 64<<10)
	io(t, before, cs.Store(at, 64<<10), pattern(64<<10, 1), nvme.Success)
	require.NoError(t, before.Close())
	c := d.connect()
	started, cleared := make(chan struct{}, 16), make(chan struct{})
	d.compute.clearing = func() {
		started <- struct{}{}
		<-cleared
	}
	goOn := sync.OnceFunc(func() { close(cleared) })
	t.Cleanup(goOn)
	ranges := []cs.Range{{Addr: at, Len: 4096}}
	create, err := cs.CreateRangeSet(ranges)
	require.NoError(t, err)
	created := make(chan nvme.Completion, 1)
	go func() { created <- admin(t, c, create.Command, create.Data, nvme.Success) }()
	<-started
	soon(t, "the association", func() {
		admin(t, c, nvme.KeepAlive(), nil, nvme.Success)
		x := cs.Execution{Set: 1, DataLen: 4}
		io(t, c, x.Command(), make([]byte, 4), nvme.InvalidMemoryRangeSetID)
		admin(t, c, cs.DeleteRangeSet(1), nil, nvme.InvalidMemoryRangeSetID)
		page := make([]byte, 4096)
		admin(t, c, nvme.GetLog(nvme.LogMemoryRangeSets, nvme.AllNamespaces, 0, 4096), page, nvme.Success)
		assert.Zero(t, binary.LittleEndian.Uint32(page), "memory range sets")
	})
	goOn()
	set := <-created
	require.EqualValues(t, 1, set.DW0())
	admin(t, c, cs.DeleteRangeSet(1), nil, nvme.Success)
	other, err := cs.CreateRangeSet([]cs.Range{{Addr: testSLM, Len: 4096}})
	require.NoError(t, err)
	admin(t, c, other.Command, other.Data, nvme.InvalidMemoryRangeSet)
	admin(t, c, create.Command, create.Data, nvme.Success)
}

// soon fails the test if a call does not return.
func soon(t *testing.T, what string, call func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s waits for memory that is being cleared", what)
	}
}

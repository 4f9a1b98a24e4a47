package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// TestADriveWithoutFlash has no namespace 1: the vendor set's I/O commands are sent to the namespace of computational
// programs, and copies from flash are refused.
func TestADriveWithoutFlash(t *testing.T) {
	d := newDrive(t, func(o *Options) {
		o.Flash, o.BlockSize = nil, 4096
		o.Lost = func() (off, n int64) { return 0, 4096 }
	})
	assert.Zero(t, d.Blocks())
	assert.Zero(t, d.BlockSize())
	c := d.connect()
	list := make([]byte, nvme.IdentifySize)
	admin(t, c, nvme.Identify(nvme.CNSActiveNamespaces, 0, 0), list, nvme.Success)
	assert.Equal(t, []uint32{cs.NamespaceSLM, cs.NamespaceCompute}, nvme.UnmarshalNamespaceList(list))
	clear(list)
	admin(t, c, nvme.Identify(nvme.CNSSetActiveNamespaces, 0, nvme.CSINVM), list, nvme.Success)
	assert.Empty(t, nvme.UnmarshalNamespaceList(list))
	list[0] = 1
	admin(t, c, nvme.Identify(nvme.CNSNamespace, cs.NamespaceNVM, 0), list, nvme.Success)
	assert.Equal(t, make([]byte, nvme.IdentifySize), list, "namespace 1 is inactive")
	admin(t, c, nvme.Identify(nvme.CNSNamespaceDescriptors, cs.NamespaceNVM, 0), list, nvme.InvalidNamespace)
	var id nvme.IdentifyController
	admin(t, c, nvme.Identify(nvme.CNSController, 0, 0), list, nvme.Success)
	require.NoError(t, id.Unmarshal(list))
	assert.Zero(t, id.TotalCapacity)
	health := make([]byte, nvme.SMARTLogSize)
	admin(t, c, nvme.GetLog(2, nvme.AllNamespaces, 0, nvme.SMARTLogSize), health, nvme.Success)
	assert.Zero(t, health[0], "what there is not cannot be lost")

	at := reserve(t, c, cs.ReserveGranularity)
	want := pattern(100, 3)
	store, fetch := cs.Store(at, 100), cs.Fetch(at, 100)
	io(t, c, store, want, nvme.InvalidNamespace)
	store.SetNSID(cs.NamespaceCompute)
	fetch.SetNSID(cs.NamespaceCompute)
	io(t, c, store, want, nvme.Success)
	got := make([]byte, 100)
	io(t, c, fetch, got, nvme.Success)
	assert.Equal(t, want, got)
	io(t, c, nvme.New(nvme.NVMFlush, nvme.AllNamespaces), nil, nvme.Success)
	io(t, c, nvme.New(nvme.NVMFlush, cs.NamespaceNVM), nil, nvme.InvalidNamespace)

	for copies, status := range map[int]nvme.Status{0: nvme.Success, 1: nvme.InvalidNamespace} {
		p := cs.Preprocess{Ranges: []cs.Range{{Addr: at, Len: 100}}}
		for range copies {
			p.Copies = append(p.Copies, cs.Copy{NSID: cs.NamespaceNVM, NLB: 1, Dest: at})
		}
		b, err := p.Marshal()
		require.NoError(t, err)
		cmd := cs.PreprocessCommand(uint32(len(b)))
		cmd.SetNSID(cs.NamespaceCompute)
		io(t, c, cmd, b, status)
	}

	_, err := New(Options{})
	require.ErrorContains(t, err, "neither flash nor computation")
}

// TestVendorCommandsHaveOnePlace: on a drive with flash they stay where hosts send them.
func TestVendorCommandsHaveOnePlace(t *testing.T) {
	c := newDrive(t).connect()
	at := reserve(t, c, cs.ReserveGranularity)
	store := cs.Store(at, 4)
	io(t, c, store, make([]byte, 4), nvme.Success)
	store.SetNSID(cs.NamespaceCompute)
	io(t, c, store, make([]byte, 4), nvme.InvalidOpcode)
}

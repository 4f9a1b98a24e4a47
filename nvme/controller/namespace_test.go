package controller

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

func addNamespace(s *Subsystem, n Namespace) (uint32, error) {
	ids, err := s.ChangeNamespaces(nil, []Namespace{n})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

func removeNamespace(s *Subsystem, nsid uint32) error {
	_, err := s.ChangeNamespaces([]uint32{nsid}, nil)
	return err
}

// add adds a namespace of blocks of 4096 bytes.
func (d *drive) add(nsid uint32, size int) (*memFlash, uint32) {
	d.t.Helper()
	f := newFlash(size)
	id, err := addNamespace(d.Subsystem, Namespace{NSID: nsid, Flash: f, BlockSize: 4096,
		UUID: uuid.NewSHA1(uuid.UUID{}, []byte("added"))})
	require.NoError(d.t, err)
	return f, id
}

func TestAddedNamespace(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	before := admin(t, c, nvme.Identify(nvme.CNSController, 0, 0), make([]byte, nvme.IdentifySize), nvme.Success)
	require.True(t, before.Status().OK())
	f, id := d.add(0, 1<<20)
	require.Equal(t, uint32(FirstAddedNSID), id)
	_, far := d.add(MaxNSID, 8192)
	require.Equal(t, uint32(MaxNSID), far)

	assert.Equal(t, []uint32{1, 2, 3, 4, MaxNSID}, nvme.UnmarshalNamespaceList(identify(t, c, nvme.CNSActiveNamespaces, 0,
		0, nvme.Success)))
	assert.Equal(t, []uint32{1, 4, MaxNSID}, nvme.UnmarshalNamespaceList(identify(t, c, nvme.CNSSetActiveNamespaces, 0,
		nvme.CSINVM, nvme.Success)))
	assert.Equal(t, []uint32{MaxNSID}, nvme.UnmarshalNamespaceList(identify(t, c, nvme.CNSActiveNamespaces, 4, 0,
		nvme.Success)))
	var ctrl nvme.IdentifyController
	require.NoError(t, ctrl.Unmarshal(identify(t, c, nvme.CNSController, 0, 0, nvme.Success)))
	assert.EqualValues(t, testFlash+1<<20+8192, ctrl.TotalCapacity)
	var ns nvme.IdentifyNamespace
	require.NoError(t, ns.Unmarshal(identify(t, c, nvme.CNSNamespace, id, 0, nvme.Success)))
	assert.EqualValues(t, 256, ns.Size)
	assert.EqualValues(t, 12, ns.Formats[0].BlockShift)
	var ids nvme.NamespaceIDs
	require.NoError(t, ids.Unmarshal(identify(t, c, nvme.CNSNamespaceDescriptors, id, 0, nvme.Success)))
	assert.Equal(t, uuid.NewSHA1(uuid.UUID{}, []byte("added")), uuid.UUID(ids.UUID))
	assert.Equal(t, uuid.UUID(ns.NGUID), uuid.UUID(ids.UUID))

	want := pattern(8192, 3)
	io(t, c, nvme.Write(id, 7, 2, 4096, false), want, nvme.Success)
	assert.Equal(t, want, f.data[7*4096:9*4096])
	assert.Equal(t, make([]byte, testFlash), d.flash.data, "the drive's own is another")
	got := make([]byte, 8192)
	io(t, c, nvme.Read(id, 7, 2, 4096), got, nvme.Success)
	assert.Equal(t, want, got)
	io(t, c, nvme.New(nvme.NVMRead, id), nil, nvme.InvalidSGLLength)
	io(t, c, nvme.Read(id, 256, 1, 4096), got[:4096], nvme.LBAOutOfRange)
	compare := nvme.Read(id, 7, 2, 4096)
	compare[0] = nvme.NVMCompare
	io(t, c, compare, want, nvme.Success)
	io(t, c, nvme.WriteZeroes(id, 8, 1, false), nil, nvme.Success)
	assert.Equal(t, make([]byte, 4096), f.data[8*4096:9*4096])
	cmd, ranges := nvme.Deallocate(id, []nvme.DatasetRange{{SLBA: 7, Blocks: 1}})
	io(t, c, cmd, ranges, nvme.Success)
	assert.Equal(t, make([]byte, 4096), f.data[7*4096:8*4096])

	own, added := d.flash.synced(), f.synced()
	io(t, c, nvme.Flush(id), nil, nvme.Success)
	assert.Equal(t, []int{own, added + 1}, []int{d.flash.synced(), f.synced()})
	io(t, c, nvme.Flush(nvme.AllNamespaces), nil, nvme.Success)
	assert.Equal(t, []int{own + 1, added + 2}, []int{d.flash.synced(), f.synced()})
}

// The drive computes over the blocks of a namespace that was added, by its size of block, as over its own.
func TestComputeOverAddedNamespace(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	f, id := d.add(9, 1<<20)
	copy(f.data[4096:], pattern(8192, 5))
	at := reserve(t, c, 16384)
	p := cs.Preprocess{Copies: []cs.Copy{{NSID: id, SLBA: 1, NLB: 2, Dest: at}}}
	b, err := p.Marshal()
	require.NoError(t, err)
	io(t, c, cs.PreprocessCommand(uint32(len(b))), b, nvme.Success)
	got := make([]byte, 8192)
	io(t, c, cs.Fetch(at, 8192), got, nvme.Success)
	require.Equal(t, f.data[4096:][:8192], got)
	require.NoError(t, removeNamespace(d.Subsystem, id))
	io(t, c, cs.PreprocessCommand(uint32(len(b))), b, nvme.InvalidNamespace)
}

func TestRemoveNamespace(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	admin(t, c, nvme.SetFeature(nvme.FeatureAsyncEvents, noticeNamespace), nil, nvme.Success)
	next := waitEvent(c)
	_, id := d.add(5, 1<<20)
	require.Equal(t, nvme.EventNamespaceChanged, <-next)
	page := make([]byte, nvme.ChangedLogSize)
	admin(t, c, nvme.GetLog(nvme.LogChangedNamespaces, 0, 0, nvme.ChangedLogSize), page, nvme.Success)
	require.Equal(t, []uint32{5}, nvme.UnmarshalNamespaceList(page))

	next = waitEvent(c)
	require.NoError(t, removeNamespace(d.Subsystem, id))
	require.Equal(t, nvme.EventNamespaceChanged, <-next)
	admin(t, c, nvme.GetLog(nvme.LogChangedNamespaces, 0, 0, nvme.ChangedLogSize), page, nvme.Success)
	require.Equal(t, []uint32{5}, nvme.UnmarshalNamespaceList(page))
	require.Equal(t, []uint32{1, 2, 3}, nvme.UnmarshalNamespaceList(identify(t, c, nvme.CNSActiveNamespaces, 0, 0,
		nvme.Success)))
	assert.Equal(t, make([]byte, nvme.IdentifySize), identify(t, c, nvme.CNSNamespace, id, 0, nvme.Success),
		"an inactive namespace")
	for _, cns := range []uint8{nvme.CNSNamespaceDescriptors, nvme.CNSIndependentNamespace} {
		identify(t, c, cns, id, 0, nvme.InvalidNamespace)
	}
	io(t, c, nvme.Read(id, 0, 1, 4096), make([]byte, 4096), nvme.InvalidNamespace)
	io(t, c, nvme.Flush(id), nil, nvme.InvalidNamespace)
	io(t, c, nvme.Read(1, 0, 1, 512), make([]byte, 512), nvme.Success)

	f := newFlash(8192)
	_, err := addNamespace(d.Subsystem, Namespace{NSID: 5, Flash: f})
	require.NoError(t, err)
	io(t, c, nvme.Read(5, 15, 1, 512), make([]byte, 512), nvme.Success)
	require.NoError(t, removeNamespace(d.Subsystem, 5))
}

func TestNamespacesThatCannotBe(t *testing.T) {
	d := newDrive(t)
	d.add(4, 4096)
	for name, test := range map[string]struct {
		namespace Namespace
		want      string
	}{
		"no flash":             {Namespace{}, "Flash is required"},
		"the drive's own":      {Namespace{NSID: 1, Flash: newFlash(512)}, "from 4 to 128"},
		"past the last":        {Namespace{NSID: MaxNSID + 1, Flash: newFlash(512)}, "from 4 to 128"},
		"blocks of a kilobyte": {Namespace{Flash: newFlash(4096), BlockSize: 1024}, "use 512 or 4096"},
		"less than a block":    {Namespace{Flash: newFlash(512), BlockSize: 4096}, "holds no block"},
		"one that is there":    {Namespace{NSID: 4, Flash: newFlash(512)}, ErrNamespaceExists.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := addNamespace(d.Subsystem, test.namespace)
			require.ErrorContains(t, err, test.want)
		})
	}
	for nsid := uint32(FirstAddedNSID + 1); nsid <= MaxNSID; nsid++ {
		_, err := addNamespace(d.Subsystem, Namespace{Flash: newFlash(512)})
		require.NoError(t, err)
	}
	_, err := addNamespace(d.Subsystem, Namespace{Flash: newFlash(512)})
	require.ErrorIs(t, err, ErrNamespaceExists)
	for _, nsid := range []uint32{0, 1, 2, MaxNSID + 1, nvme.AllNamespaces} {
		require.ErrorIs(t, removeNamespace(d.Subsystem, nsid), ErrNoNamespace)
	}
	require.NoError(t, removeNamespace(d.Subsystem, 50))
	require.ErrorIs(t, removeNamespace(d.Subsystem, 50), ErrNoNamespace)
	id, err := addNamespace(d.Subsystem, Namespace{Flash: newFlash(512)})
	require.NoError(t, err)
	require.EqualValues(t, 50, id, "the first that is free")
	_, err = addNamespace(NewDiscovery(DiscoveryOptions{}), Namespace{Flash: newFlash(512)})
	require.ErrorContains(t, err, "discovery")
}

// TestChangeNamespacesIsAllOrNothing makes a change fail at each of its parts: the namespaces stay as they were.
func TestChangeNamespacesIsAllOrNothing(t *testing.T) {
	d := newDrive(t)
	c := d.connect()
	kept, _ := d.add(4, 4096)
	copy(kept.data, "kept")
	d.add(6, 4096)
	active := func() []uint32 {
		return nvme.UnmarshalNamespaceList(identify(t, c, nvme.CNSActiveNamespaces, 0, 0, nvme.Success))
	}
	fine := Namespace{NSID: 9, Flash: newFlash(4096)}
	for name, change := range map[string]struct {
		remove []uint32
		add    []Namespace
		want   error
	}{
		"one to remove is not there":  {[]uint32{4, 5}, []Namespace{fine}, ErrNoNamespace},
		"one is removed twice":        {[]uint32{4, 4}, []Namespace{fine}, ErrNoNamespace},
		"one to add is there":         {[]uint32{4}, []Namespace{fine, {NSID: 6, Flash: newFlash(4096)}}, ErrNamespaceExists},
		"one is added twice":          {[]uint32{4}, []Namespace{fine, fine}, ErrNamespaceExists},
		"one to add has no flash":     {[]uint32{4}, []Namespace{fine, {NSID: 7}}, nil},
		"one to add is the drive's":   {[]uint32{4}, []Namespace{fine, {NSID: 1, Flash: newFlash(4096)}}, nil},
		"one to remove is the drives": {[]uint32{4, 1}, []Namespace{fine}, ErrNoNamespace},
	} {
		_, err := d.ChangeNamespaces(change.remove, change.add)
		require.Error(t, err, name)
		if change.want != nil {
			require.ErrorIs(t, err, change.want, name)
		}
		require.Equal(t, []uint32{1, 2, 3, 4, 6}, active(), name)
		got := make([]byte, 4096)
		io(t, c, nvme.Read(4, 0, 1, 4096), got, nvme.Success)
		require.Equal(t, kept.data, got, name)
	}
	// A free identifier is not one that the same change asks for by number.
	ids, err := d.ChangeNamespaces([]uint32{4, 6}, []Namespace{{Flash: newFlash(4096)}, {NSID: 4, Flash: newFlash(8192)}})
	require.NoError(t, err)
	require.Equal(t, []uint32{5, 4}, ids)
	require.Equal(t, []uint32{1, 2, 3, 4, 5}, active())
	var ns nvme.IdentifyNamespace
	require.NoError(t, ns.Unmarshal(identify(t, c, nvme.CNSNamespace, 4, 0, nvme.Success)))
	require.EqualValues(t, 16, ns.Size, "the identifier names the new namespace")
}

// heldFlash holds reads up, and fails the test when it is used after its owner closed it.
type heldFlash struct {
	*memFlash
	t       *testing.T
	closed  atomic.Bool
	entered chan struct{} // gets a value for each transfer that begins; nil: no test receives
	hold    chan struct{} // transfers wait until it is closed; nil: they do not
}

func (f *heldFlash) use() {
	if f.entered != nil {
		f.entered <- struct{}{}
	}
	if f.hold != nil {
		<-f.hold
	}
	if f.closed.Load() {
		f.t.Error("the flash is used after its namespace was removed")
	}
}

func (f *heldFlash) ReadAt(p []byte, off int64) (int, error) {
	f.use()
	return f.memFlash.ReadAt(p, off)
}

func (f *heldFlash) WriteAt(p []byte, off int64) (int, error) {
	f.use()
	return f.memFlash.WriteAt(p, off)
}

func (f *heldFlash) Sync() error {
	f.use()
	return f.memFlash.Sync()
}

// The removal of a namespace waits for the commands that run; a long command ends at its next step, and new commands
// are refused meanwhile.
func TestRemoveNamespaceWaits(t *testing.T) {
	for name, test := range map[string]struct {
		command func(d *drive, c nvme.Conn, id uint32) (nvme.Command, []byte)
		want    nvme.Status
	}{
		"a read": {func(_ *drive, _ nvme.Conn, id uint32) (nvme.Command, []byte) {
			return nvme.Read(id, 0, 8, 512), make([]byte, 4096)
		}, nvme.Success},
		"zeros over everything": {func(_ *drive, _ nvme.Conn, id uint32) (nvme.Command, []byte) {
			return nvme.WriteZeroes(id, 0, 8192, false), nil
		}, nvme.InvalidNamespace},
		"a copy into memory": {func(d *drive, c nvme.Conn, id uint32) (nvme.Command, []byte) {
			at := reserve(d.t, c, 1<<20)
			p := cs.Preprocess{Copies: []cs.Copy{{NSID: id, SLBA: 0, NLB: 8, Dest: at}, {NSID: id, SLBA: 0, NLB: 8, Dest: at}}}
			b, err := p.Marshal()
			require.NoError(d.t, err)
			return cs.PreprocessCommand(uint32(len(b))), b
		}, nvme.InvalidNamespace},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDrive(t)
			conn := d.connect()
			f := &heldFlash{memFlash: newFlash(4 << 20), t: t, entered: make(chan struct{}), hold: make(chan struct{})}
			id, err := addNamespace(d.Subsystem, Namespace{Flash: f})
			require.NoError(t, err)
			cmd, data := test.command(d, conn, id)
			done := make(chan error, 1)
			go func() { _, err := conn.IO(context.Background(), &cmd, data); done <- err }()
			<-f.entered
			removed := make(chan error, 1)
			go func() { removed <- removeNamespace(d.Subsystem, id) }()
			until(t, func() bool { _, ok := d.commandSet(id); return !ok })
			io(t, conn, nvme.Read(id, 0, 1, 512), make([]byte, 512), nvme.InvalidNamespace)
			select {
			case <-removed:
				t.Fatal("removed under a command that runs")
			default:
			}
			ns := f.entered
			close(f.hold)
			go func() {
				for range ns { // whatever else the command does
				}
			}()
			require.NoError(t, <-removed)
			f.closed.Store(true)
			if err := <-done; test.want.OK() {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, test.want)
			}
			close(ns)
		})
	}
}

// Namespaces come and go under hosts that read, write, flush and identify: each command is done or refused, and a flash
// that was given back is not touched.
func TestNamespacesComeAndGo(t *testing.T) {
	d := newDrive(t)
	done := make(chan struct{})
	var hosts, changes sync.WaitGroup
	var did atomic.Int64
	for w := range byte(4) {
		c := d.connect()
		hosts.Add(1)
		go func() {
			defer hosts.Done()
			at := reserve(t, c, 4096)
			p := cs.Preprocess{Copies: []cs.Copy{{NSID: 4, SLBA: uint64(w), NLB: 1, Dest: at}}}
			b, err := p.Marshal()
			assert.NoError(t, err)
			data := bytes.Repeat([]byte{w}, 512)
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, request := range []struct {
					cmd  nvme.Command
					data []byte
				}{
					{nvme.Write(4, uint64(w), 1, 512, true), data},
					{nvme.Read(4, uint64(w), 1, 512), make([]byte, 512)},
					{nvme.Flush(nvme.AllNamespaces), nil},
					{cs.PreprocessCommand(uint32(len(b))), b},
				} {
					_, err := c.IO(context.Background(), &request.cmd, request.data)
					if err == nil {
						did.Add(1)
						continue
					}
					assert.ErrorIs(t, err, nvme.InvalidNamespace)
				}
				id := nvme.Identify(nvme.CNSNamespace, 4, 0)
				if _, err := c.Admin(context.Background(), &id, make([]byte, nvme.IdentifySize)); err != nil {
					assert.ErrorIs(t, err, nvme.InvalidNamespace)
				}
			}
		}()
	}
	for range 2 {
		changes.Add(1)
		go func() {
			defer changes.Done()
			for range 200 {
				f := &heldFlash{memFlash: newFlash(1 << 16), t: t}
				if _, err := addNamespace(d.Subsystem, Namespace{NSID: 4, Flash: f}); err != nil {
					assert.ErrorIs(t, err, ErrNamespaceExists)
					continue
				}
				for before := did.Load(); did.Load() < before+3; {
					runtime.Gosched()
				}
				assert.NoError(t, removeNamespace(d.Subsystem, 4))
				f.closed.Store(true)
			}
		}()
	}
	changes.Wait()
	close(done)
	hosts.Wait()
}

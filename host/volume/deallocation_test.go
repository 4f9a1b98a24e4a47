package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
)

// trimDevice is a fakeDevice that takes room back, and whose writes fail as a full disk's do.
type trimDevice struct {
	*fakeDevice
	room    int // block writes until the disk is full; negative: never
	refuses error
	taken   [][2]uint64 // blocks taken back
}

func (d *trimDevice) WriteBlocks(ctx context.Context, p []byte, lba uint64, fua bool) error {
	n := len(p) / d.bs
	if d.room >= 0 && n > d.room {
		err := d.fakeDevice.WriteBlocks(ctx, p[:d.room*d.bs], lba, fua)
		d.room = 0
		return errors.Join(nvme.CapacityExceeded, err)
	}
	if d.room >= 0 {
		d.room -= n
	}
	return d.fakeDevice.WriteBlocks(ctx, p, lba, fua)
}

func (d *trimDevice) Deallocate(_ context.Context, lba, n uint64) error {
	if d.refuses != nil {
		return d.refuses
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken = append(d.taken, [2]uint64{lba, n})
	clear(d.media[lba*uint64(d.bs):][:n*uint64(d.bs)])
	for i := lba; i < lba+n; i++ {
		delete(d.cache, i)
	}
	d.order = nil
	for i := range d.cache {
		d.order = append(d.order, i)
	}
	return nil
}

// TestAFailedPutGivesItsRoomBack wherever the disk becomes full, and nothing else: the members before it are as they
// were, also after the power went.
func TestAFailedPutGivesItsRoomBack(t *testing.T) {
	bothBlockSizes(t, func(t *testing.T, bs int) {
		for _, before := range []int64{-1, 10, 1400, 2600, 3584} {
			base := newFake(bs, 2<<20)
			zeros := make([]byte, base.Size())
			old := map[string][]byte{}
			if before >= 0 {
				old["old"] = noise(3, before)
				put(t, open(t, base), "old", old["old"])
			}
			data := noise(4, bufferSize+70_000)
			used, _ := open(t, base).Used()
			whole := &trimDevice{fakeDevice: base.clone(), room: -1}
			put(t, open(t, whole), "new", data)
			failed := 0
			for room := 0; room < whole.writes-1; room += 1 + room/3 { // the last write is the commit
				dev := &trimDevice{fakeDevice: base.clone(), room: room}
				v := open(t, dev)
				err := v.Put(t.Context(), "new", int64(len(data)), bytes.NewReader(data))
				failed++
				require.ErrorIs(t, err, ErrDiskFull)
				require.ErrorIs(t, err, nvme.CapacityExceeded)
				what := fmt.Sprintf("room for %d blocks behind %d bytes", room, before)
				for _, back := range []*fakeDevice{dev.fakeDevice, dev.crash(func(int) bool { return true }),
					dev.crash(func(int) bool { return false })} {
					require.Equal(t, old, contents(t, open(t, back)), what)
					behind := make([]byte, back.Size()-used)
					_, err := back.ReaderAt(t.Context()).ReadAt(behind, used)
					require.NoError(t, err)
					require.True(t, bytes.Equal(behind, zeros[used:]), what)
				}
				for _, r := range dev.taken {
					require.Greater(t, int64(r[0])*int64(bs), used, what)
				}
				dev.room = -1
				put(t, v, "new", data)
				require.Equal(t, data, contents(t, open(t, dev))["new"], "and there is room for the next")
			}
			require.Greater(t, failed, 5)
		}
	})
}

// TestNothingIsGivenBackThatMayBeCommitted checks that a Put whose commit failed gives nothing back, because the commit
// may have been done.
func TestNothingIsGivenBackThatMayBeCommitted(t *testing.T) {
	data := noise(4, 9000)
	blocks := func() int {
		dev := &trimDevice{fakeDevice: newFake(512, 1<<20), room: -1}
		put(t, open(t, dev), "new", data)
		return dev.writes
	}()
	dev := &trimDevice{fakeDevice: newFake(512, 1<<20), room: blocks - 1}
	v := open(t, dev)
	require.ErrorIs(t, v.Put(t.Context(), "new", int64(len(data)), bytes.NewReader(data)), nvme.CapacityExceeded)
	assert.Empty(t, dev.taken)
	dev = &trimDevice{fakeDevice: newFake(512, 1<<20), room: blocks - 2}
	require.Error(t, open(t, dev).Put(t.Context(), "new", int64(len(data)), bytes.NewReader(data)))
	assert.NotEmpty(t, dev.taken, "the write before it")
}

// TestAPutThatIsCalledOffGivesItsRoomBack, too, and one whose source fails; a drive that refuses is said.
func TestAPutThatIsCalledOffGivesItsRoomBack(t *testing.T) {
	data := noise(4, 3*bufferSize)
	dev := &trimDevice{fakeDevice: newFake(512, 8<<20), room: -1}
	v := open(t, dev)
	ctx, cancel := context.WithCancel(t.Context())
	source := io.MultiReader(bytes.NewReader(data[:2*bufferSize]),
		readerFunc(func([]byte) (int, error) { cancel(); return 0, ctx.Err() }))
	require.ErrorIs(t, v.Put(ctx, "new", int64(len(data)), source), context.Canceled)
	require.Len(t, dev.taken, 1)
	require.Error(t, v.Put(t.Context(), "new", int64(len(data)), bytes.NewReader(data[:2*bufferSize])))
	require.Len(t, dev.taken, 2)
	dev.refuses = errors.New("not now")
	err := v.Put(t.Context(), "new", int64(len(data)), bytes.NewReader(data[:2*bufferSize]))
	require.ErrorIs(t, err, dev.refuses)
	require.ErrorIs(t, err, ErrSize)
	require.ErrorContains(t, err, "millrace drive trim")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestTrim gives back what lies behind the archive, and no block of it.
func TestTrim(t *testing.T) {
	bothBlockSizes(t, func(t *testing.T, bs int) {
		for _, size := range []int64{-1, 0, 100, 511, 512, 2048, 3072, 3584, 5000} {
			dev := &trimDevice{fakeDevice: newFake(bs, 1<<20), room: -1}
			old := map[string][]byte{}
			v := open(t, dev)
			if size >= 0 {
				old["old"] = noise(3, size)
				put(t, v, "old", old["old"])
			}
			used, _ := v.Used()
			keep := roundUp(used+2*sector, int64(bs))
			for i := keep; i < dev.Size(); i++ {
				dev.media[i] = 7
			}
			whole := bytes.Clone(dev.media[:keep])
			n, err := v.Trim(t.Context())
			require.NoError(t, err)
			assert.Equal(t, dev.Size()-keep, n)
			assert.Equal(t, whole, dev.media[:keep])
			assert.Equal(t, make([]byte, n), dev.media[keep:])
			require.Equal(t, old, contents(t, open(t, dev)))
		}
		full := &trimDevice{fakeDevice: newFake(bs, 8192), room: -1}
		v := open(t, full)
		put(t, v, "old", noise(1, 8192-3*512))
		n, err := v.Trim(t.Context())
		require.NoError(t, err)
		assert.Zero(t, n)
		_, err = open(t, newFake(bs, 8192)).Trim(t.Context())
		require.ErrorIs(t, err, ErrNoTrim)
	})
}

// TestSparseMembersHaveTheirOwnNames checks the names of sparse members, whose header in tar's newer formats has
// another name.
func TestSparseMembersHaveTheirOwnNames(t *testing.T) {
	dev := newFake(512, 1<<16)
	records := appendRecord(nil, "GNU.sparse.major", "1")
	records = appendRecord(records, "GNU.sparse.name", "day/part.parquet")
	records = appendRecord(records, "GNU.sparse.realsize", "1048578")
	b := appendBlock(nil, "x", int64(len(records)), time.Unix(0, 0), typePax)
	b = append(append(b, records...), make([]byte, 512-len(records))...)
	b = appendBlock(b, "./GNUSparseFile.0/part.parquet", 0, time.Unix(0, 0), typeRegular)
	copy(dev.media, b)
	_, err := open(t, dev).Open(t.Context(), "day/part.parquet")
	require.ErrorIs(t, err, ErrSparse)
	require.ErrorContains(t, err, `"day/part.parquet"`)
	require.ErrorContains(t, err, "without tar's --sparse")
}

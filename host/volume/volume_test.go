package volume

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func bothBlockSizes(t *testing.T, f func(t *testing.T, bs int)) {
	for _, bs := range []int{512, 4096} {
		t.Run(fmt.Sprintf("lba %d", bs), func(t *testing.T) { f(t, bs) })
	}
}

func open(t testing.TB, dev BlockDevice) *Volume {
	t.Helper()
	v, err := Open(t.Context(), dev)
	require.NoError(t, err)
	v.Now = func() time.Time { return time.Unix(1700000000, 0) }
	return v
}

func put(t testing.TB, v *Volume, name string, data []byte) {
	t.Helper()
	require.NoError(t, v.Put(t.Context(), name, int64(len(data)), bytes.NewReader(data)))
}

func contents(t testing.TB, v *Volume) map[string][]byte {
	t.Helper()
	all, err := v.List(t.Context())
	require.NoError(t, err)
	out := map[string][]byte{}
	for _, m := range all {
		r, err := v.Open(t.Context(), m.Name)
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		out[m.Name] = b
	}
	return out
}

func TestPutListOpen(t *testing.T) {
	bothBlockSizes(t, func(t *testing.T, bs int) {
		dev := newFake(bs, 8<<20)
		v := open(t, dev)
		want := map[string][]byte{}
		for i, size := range []int64{0, 1, 511, 512, 513, 3072, 3584, 4095, 4096, 4097, bufferSize - 512, bufferSize,
			bufferSize + 1,
			2*bufferSize + 77} {
			name := fmt.Sprintf("dir/part-%02d.parquet", i)
			want[name] = noise(uint64(i), size)
			put(t, v, name, want[name])
		}
		require.Equal(t, want, contents(t, v))
		require.Equal(t, want, contents(t, open(t, dev)), "opened again")

		all, err := v.List(t.Context())
		require.NoError(t, err)
		again, err := open(t, dev).List(t.Context())
		require.NoError(t, err)
		assert.Equal(t, all, again, "a member's place does not depend on who wrote it")
		for _, m := range all {
			assert.Zero(t, m.Offset%512, m.Name)
		}
	})
}

func TestGoTarReadsWhatPutWrote(t *testing.T) {
	long := strings.Repeat("long/", 60) + "name.parquet"
	dev := newFake(4096, 1<<20)
	v := open(t, dev)
	put(t, v, "a", noise(1, 5000))
	put(t, v, long, noise(2, 100))
	put(t, v, "ü.parquet", nil)
	r := tar.NewReader(bytes.NewReader(dev.media))
	for _, want := range []struct {
		name string
		data []byte
	}{{"a", noise(1, 5000)}, {long, noise(2, 100)}, {"ü.parquet", []byte{}}} {
		h, err := r.Next()
		require.NoError(t, err)
		assert.Equal(t, want.name, h.Name)
		assert.Equal(t, int64(1700000000), h.ModTime.Unix())
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.Equal(t, want.data, b)
	}
	_, err := r.Next()
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, long, mustList(t, open(t, dev))[1].Name)
}

func mustList(t testing.TB, v *Volume) []Member {
	t.Helper()
	all, err := v.List(t.Context())
	require.NoError(t, err)
	return all
}

func TestNoCrashLosesAMember(t *testing.T) {
	bothBlockSizes(t, func(t *testing.T, bs int) {
		for _, size := range []int64{0, 100, 1500, 9000, bufferSize + 5000} {
			for _, before := range []int64{-1, 10, 1400, 2600} {
				if size > bufferSize && before != 1400 {
					continue
				}
				crashEverywhere(t, bs, before, size)
			}
		}
	})
}

// crashEverywhere puts a member of size bytes behind one of before bytes (-1: behind nothing) and takes the power away
// after every block write, each time losing several choices of what the cache held.
func crashEverywhere(t *testing.T, bs int, before, size int64) {
	room := roundUp(size, 4096) + 32<<10
	base := newFake(bs, room)
	copy(base.media[512*20:], noise(9, room/2)) // what an older use of the drive left behind the archive
	old := map[string][]byte{}
	if before >= 0 {
		old["old"] = noise(3, before)
		put(t, open(t, base), "old", old["old"])
	}
	base = base.clone()
	data := noise(4, size)
	whole := map[string][]byte{"new": data}
	for k, v := range old {
		whole[k] = v
	}
	for budget := 0; ; budget++ {
		// Many of a large member's writes are alike.
		if budget > 5 && size > bufferSize && budget%397 != 0 && budget < int(size)/bs-3 {
			continue
		}
		dev := base.clone()
		dev.budget = budget
		v := open(t, dev)
		err := v.Put(t.Context(), "new", size, bytes.NewReader(data))
		if err != nil {
			require.ErrorIs(t, err, errPower)
		}
		for name, keep := range map[string]func(int) bool{
			"nothing of the cache": func(int) bool { return false },
			"all of the cache":     func(int) bool { return true },
			"every other block":    func(i int) bool { return i%2 == 0 },
			"the last blocks":      func(i int) bool { return i > budget/2 },
		} {
			back := dev.crash(keep)
			got := contents(t, open(t, back))
			want := old
			if err == nil {
				want = whole
			}
			require.Equal(t, want, got, "lba %d, %d behind %d bytes, power lost after %d writes, %s", bs, size, before,
				budget, name)
			if err != nil {
				// The drive is as good as before.
				put(t, open(t, back), "new", data)
				require.Equal(t, whole, contents(t, open(t, back)))
			}
		}
		if err == nil {
			require.Positive(t, dev.flushes)
			return
		}
	}
}

func TestFullDrive(t *testing.T) {
	bothBlockSizes(t, func(t *testing.T, bs int) {
		dev := newFake(bs, 64<<10)
		v := open(t, dev)
		most := int64(64<<10 - 3*512)
		err := v.Put(t.Context(), "big", most+1, bytes.NewReader(make([]byte, most+1)))
		var full *FullError
		require.ErrorAs(t, err, &full)
		require.ErrorIs(t, err, ErrFull)
		assert.Equal(t, int64(64<<10+512), full.Need)
		assert.Equal(t, int64(64<<10), full.Free)
		assert.Zero(t, dev.writes)
		require.ErrorIs(t, v.Put(t.Context(), "max", math.MaxInt64, strings.NewReader("")), ErrFull)

		put(t, v, "fits", noise(1, most))
		require.ErrorIs(t, v.Put(t.Context(), "more", 0, strings.NewReader("")), ErrFull)
		assert.Equal(t, noise(1, most), contents(t, open(t, dev))["fits"])
		used, size := v.Used()
		assert.Equal(t, int64(64<<10-1024), used)
		assert.Equal(t, int64(64<<10), size)
	})
}

func TestPutRefuses(t *testing.T) {
	dev := newFake(512, 1<<20)
	v := open(t, dev)
	put(t, v, "there", []byte("1"))
	for _, c := range []struct {
		name   string
		size   int64
		source string
		want   error
	}{
		{"", 0, "", ErrName},
		{"/abs", 0, "", ErrName},
		{"a/../b", 0, "", ErrName},
		{"dir/", 0, "", ErrName},
		{".", 0, "", ErrName},
		{"nul\x00", 0, "", ErrName},
		{strings.Repeat("x", MaxName+1), 0, "", ErrName},
		{"\xff", 0, "", ErrName},
		{"there", 1, "2", ErrExists},
		{"short", 5, "1234", ErrSize},
		{"long", 3, "1234", ErrSize},
		{"negative", -1, "", ErrSize},
	} {
		t.Run(fmt.Sprintf("%.20q", c.name), func(t *testing.T) {
			require.ErrorIs(t, v.Put(t.Context(), c.name, c.size, strings.NewReader(c.source)), c.want)
			assert.Equal(t, map[string][]byte{"there": []byte("1")}, contents(t, open(t, dev)))
		})
	}
	broken := errors.New("source broke")
	require.ErrorIs(t, v.Put(t.Context(), "b", 9, io.MultiReader(strings.NewReader("123"), errReader{broken})), broken)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, v.Put(ctx, "c", 9, strings.NewReader("123456789")), context.Canceled)
	put(t, v, "after all that", []byte("fine"))
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestOpenRefuses(t *testing.T) {
	v := open(t, newFake(512, 1<<16))
	_, err := v.Open(t.Context(), "none")
	require.ErrorIs(t, err, fs.ErrNotExist)

	dev := newFake(512, 1<<16)
	copy(dev.media, noise(1, 1<<16))
	_, err = Open(t.Context(), dev)
	require.ErrorIs(t, err, ErrNotTar)

	dev = newFake(512, 1<<16)
	put(t, open(t, dev), "a", []byte("1"))
	copy(dev.media[1024:], noise(1, 512))
	_, err = Open(t.Context(), dev)
	require.ErrorIs(t, err, ErrCorrupt)

	dev.err = errors.New("bad block")
	_, err = Open(t.Context(), dev)
	require.ErrorIs(t, err, dev.err)

	_, err = Open(t.Context(), newFake(100, 1000))
	require.Error(t, err)
}

func TestTwoVolumesOfOneDriveSeeEachOther(t *testing.T) {
	dev := newFake(4096, 1<<20)
	a, b := open(t, dev), open(t, dev)
	put(t, a, "from a", noise(1, 3000))
	put(t, b, "from b", noise(2, 3000))
	require.ErrorIs(t, a.Put(t.Context(), "from b", 1, strings.NewReader("x")), ErrExists)
	assert.Len(t, contents(t, a), 2)
	assert.Len(t, contents(t, b), 2)
}

func TestLaterMemberOfANameCounts(t *testing.T) {
	dev := newFake(512, 1<<16)
	b := appendBlock(nil, "x", 0, time.Unix(0, 0), typeRegular)
	b = appendBlock(b, "x", 3, time.Unix(0, 0), typeRegular)
	b = append(b, "new"...)
	copy(dev.media, b)
	assert.Equal(t, map[string][]byte{"x": []byte("new")}, contents(t, open(t, dev)))
}

package volume

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadsEveryKindOfArchive(t *testing.T) {
	long := strings.Repeat("d/", 200) + "f"
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatPAX, tar.FormatGNU} {
		t.Run(format.String(), func(t *testing.T) {
			dev := newFake(512, 1<<20)
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			names := []string{"plain", strings.Repeat("p/", 70) + "prefixed"}
			if format != tar.FormatUSTAR {
				names = append(names, long)
			}
			require.NoError(t, w.WriteHeader(&tar.Header{Name: "dir/", Typeflag: tar.TypeDir, Mode: 0o755,
				Format: format}))
			require.NoError(t, w.WriteHeader(&tar.Header{Name: "link", Linkname: "plain", Typeflag: tar.TypeSymlink,
				Format: format}))
			for i, name := range names {
				data := noise(uint64(i), int64(700*i))
				require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644,
					Typeflag: tar.TypeReg, Format: format}))
				_, err := w.Write(data)
				require.NoError(t, err)
			}
			require.NoError(t, w.Close())
			copy(dev.media, b.Bytes())
			v := open(t, dev)
			put(t, v, "ours", []byte("x"))
			got := contents(t, open(t, dev))
			require.Len(t, got, len(names)+1)
			for i, name := range names {
				assert.Equal(t, noise(uint64(i), int64(700*i)), got[name])
			}
		})
	}
}

func TestSizesPastEightGigabytesUsePax(t *testing.T) {
	b := encodeHeader("huge", maxUstarSize+1, time.Unix(0, 0))
	require.Len(t, b, 3*sector)
	s := &scanner{r: &headerReader{r: bytes.NewReader(b), size: 1 << 40}, size: 1 << 40}
	s.r.buf, s.r.offset = b, 0
	s.r.r = bytes.NewReader(append(bytes.Clone(b), make([]byte, headerBuffer)...))
	m, err := s.next()
	require.NoError(t, err)
	assert.Equal(t, int64(maxUstarSize+1), m.Size)
	assert.Equal(t, "huge", m.Name)
	assert.Len(t, encodeHeader("fits", maxUstarSize, time.Unix(0, 0)), sector)
}

func TestSparseMembersAreNamedAndRefused(t *testing.T) {
	dev := newFake(512, 1<<16)
	var b []byte
	records := appendRecord(nil, "GNU.sparse.major", "1")
	b = appendBlock(b, "x", int64(len(records)), time.Unix(0, 0), typePax)
	b = append(append(b, records...), make([]byte, 512-len(records))...)
	b = appendBlock(b, "holes", 0, time.Unix(0, 0), typeRegular)
	b = appendBlock(b, "gnu-holes", 512, time.Unix(0, 0), typeSparse)
	b = append(b, make([]byte, 512)...)
	b = appendBlock(b, "behind", 0, time.Unix(0, 0), typeRegular)
	copy(dev.media, b)
	v := open(t, dev)
	require.Len(t, mustList(t, v), 3)
	for _, name := range []string{"holes", "gnu-holes"} {
		_, err := v.Open(t.Context(), name)
		require.ErrorIs(t, err, ErrSparse, name)
	}
	_, err := v.Open(t.Context(), "behind")
	require.NoError(t, err)
}

func TestExtensionsAreBounded(t *testing.T) {
	for name, b := range map[string][]byte{
		"long pax":           appendBlock(nil, "x", maxExtension+1, time.Unix(0, 0), typePax),
		"long name":          appendBlock(nil, "x", 1<<30, time.Unix(0, 0), typeLongName),
		"past the end":       appendBlock(nil, "x", 1<<20, time.Unix(0, 0), typeRegular),
		"endless extensions": bytes.Repeat(appendBlock(nil, "x", 0, time.Unix(0, 0), typePax), 100),
	} {
		t.Run(name, func(t *testing.T) {
			dev := newFake(512, 1<<16)
			copy(dev.media[512:], b)
			copy(dev.media, appendBlock(nil, "first", 0, time.Unix(0, 0), typeRegular))
			_, err := Open(t.Context(), dev)
			require.ErrorIs(t, err, ErrCorrupt)
		})
	}
}

func TestPaxRecords(t *testing.T) {
	for _, c := range []struct {
		in   string
		want paxRecords
		bad  bool
	}{
		{in: "", want: paxRecords{size: -1}},
		{in: "10 path=a\n", want: paxRecords{name: "a", size: -1}},
		{in: "11 size=12\n10 path=b\n", want: paxRecords{name: "b", size: 12}},
		{in: "9 foo=bar\n", bad: true},
		{in: "11 foo=bar\n", want: paxRecords{size: -1}},
		{in: "99 path=a\n", bad: true},
		{in: "-1 path=a\n", bad: true},
		{in: "3 a\n", bad: true},
		{in: "12 size=-12\n", bad: true},
		{in: "10 path=\x00\n", bad: true},
		{in: "path=a", bad: true},
	} {
		p := paxRecords{size: -1}
		err := p.parse([]byte(c.in))
		if c.bad {
			require.Error(t, err, "%q", c.in)
			continue
		}
		require.NoError(t, err, "%q", c.in)
		assert.Equal(t, c.want, p, "%q", c.in)
	}
	for n := range 130 {
		p := paxRecords{size: -1}
		name := strings.Repeat("y", n+1)
		require.NoError(t, p.parse(appendRecord(nil, "path", name)))
		require.Equal(t, name, p.name)
	}
}

func FuzzOpen(f *testing.F) {
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatPAX, tar.FormatGNU} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		name := "f"
		if format != tar.FormatUSTAR {
			name = strings.Repeat("long/", 40) + "f"
		}
		_ = w.WriteHeader(&tar.Header{Name: name, Size: 3, Typeflag: tar.TypeReg, Format: format})
		_, _ = w.Write([]byte("abc"))
		_ = w.Close()
		f.Add(b.Bytes()[:b.Len()-1024])
	}
	f.Add(appendBlock(nil, "s", 1, time.Unix(0, 0), typeSparse))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		dev := newFake(512, roundUp(int64(len(b))+4096, 512))
		copy(dev.media, b)
		// A fuzzer cannot guess checksums.
		for off := 0; off+sector <= len(b); off += sector {
			h := dev.media[off : off+sector]
			if bytes.Equal(h, make([]byte, sector)) {
				break
			}
			copy(h[offSum:], "        ")
			sum := 0
			for _, c := range h {
				sum += int(c)
			}
			copy(h[offSum:], fmt.Sprintf("%06o\x00 ", sum))
		}
		v, err := Open(t.Context(), dev)
		if err != nil {
			return
		}
		all, err := v.List(t.Context())
		require.NoError(t, err)
		for _, m := range all {
			require.LessOrEqual(t, m.Offset+m.Size, dev.Size())
			require.GreaterOrEqual(t, m.Offset, int64(sector))
		}
		// An archive that opens can be appended to, and its other members stay.
		before := len(all)
		if v.Put(t.Context(), "one more", 5, strings.NewReader("12345")) == nil {
			after := mustList(t, open(t, dev))
			require.Len(t, after, before+1)
			require.Equal(t, "one more", after[before].Name)
		}
	})
}

func TestNumberInBase256(t *testing.T) {
	for _, c := range []struct {
		field []byte
		want  int64
		ok    bool
	}{
		{[]byte{0x80, 0, 0, 0, 0, 0, 0, 7}, 7, true},
		{[]byte{0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}, 256, true},
		{[]byte{0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 1<<63 - 1, true},
		{[]byte{0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0}, 0, false},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0, false},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0, false},
	} {
		got, err := fieldNumber(c.field)
		require.Equal(t, c.ok, err == nil, "%x: %v", c.field, err)
		require.Equal(t, c.want, got, "%x", c.field)
	}
}

package partition

import (
	"bytes"
	"crypto/sha256"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/internal/foreignparquettest"
)

// footerOf returns the footer of a file whose row groups have columns of chunk bytes each, one behind the other.
func footerOf(groups, columns int, chunk int64) *format.File {
	f := &format.File{Leaves: make([]format.Leaf, columns), FooterOffset: 4}
	for range groups {
		g := format.RowGroup{Rows: 1}
		for range columns {
			g.Columns = append(g.Columns, format.Chunk{Offset: f.FooterOffset, Compressed: chunk})
			f.FooterOffset += chunk
		}
		f.RowGroups = append(f.RowGroups, g)
	}
	f.Size = f.FooterOffset + 1000
	return f
}

func TestDigestRuns(t *testing.T) {
	for name, c := range map[string]struct {
		file             *format.File
		groups, columns  int   // how many have a place
		bytes, atMostRun int64 // bytes of all runs, and the most of a run before the footer's
	}{
		"a small file is one run":      {footerOf(3, 4, 20_000), 3, 4, 241_004, 241_004},
		"its greatest size":            {footerOf(1, 1, 256<<10-1004), 1, 1, 256 << 10, 256 << 10},
		"one byte more":                {footerOf(1, 1, 256<<10-1003), 1, 1, 256<<10 - 3, 256<<10 - 3},
		"one chunk has all the places": {footerOf(1, 1, 1<<30), 1, 1, 64*4096 + 1000, 8192},
		"eight of each":                {footerOf(8, 8, 1<<20), 8, 8, 64*4096 + 1000, 8192},
		"every column, every group":    {footerOf(10, 40, 1<<20), 10, 40, 64*4096 + 1000, 8192},
		"more columns than places":     {footerOf(3, 1000, 1<<20), 3, 64, 64*4096 + 1000, 8192},
		"more groups than places":      {footerOf(1000, 3, 1<<20), 64, 3, 64*4096 + 1000, 8192},
		"chunks of less than a place":  {footerOf(16, 40, 1000), 16, 40, 64*1000 + 1000, 8192},
		"small groups are whole":       {footerOf(60, 8, 1<<10), 60, 8, 60*8<<10 + 1000, 60 * 8 << 10 * 2},
		"no row group":                 {&format.File{Size: 1 << 20, FooterOffset: 4}, 0, 0, 1<<20 - 4, 0},
		"no column": {&format.File{Size: 1 << 20, FooterOffset: 9, RowGroups: make([]format.RowGroup,
			9)}, 0, 0, 1<<20 - 9, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.file
			runs := DigestRuns(f)
			require.LessOrEqual(t, len(runs), maxRuns)
			behind, digested := uint64(0), int64(0)
			for i, r := range runs {
				require.True(t, i == 0 || r.From > behind, "ascending and apart")
				behind = r.From + r.Len
				digested += int64(r.Len)
				if i < len(runs)-1 {
					assert.LessOrEqual(t, int64(r.Len), c.atMostRun)
				}
			}
			assert.EqualValues(t, f.Size, behind, "the footer is the last")
			assert.Equal(t, c.bytes, digested)
			groups, columns := map[int]bool{}, map[int]bool{}
			for g := range f.RowGroups {
				for i := range f.RowGroups[g].Columns {
					chunk := &f.RowGroups[g].Columns[i]
					for _, r := range runs {
						if int64(r.From) < chunk.Offset+chunk.Compressed && int64(r.From+r.Len) > chunk.Offset {
							groups[g], columns[i] = true, true
						}
					}
				}
			}
			assert.Len(t, groups, c.groups)
			assert.Len(t, columns, c.columns)
			read, err := ParseRuns(FormatRuns(runs), f.Size)
			require.NoError(t, err)
			assert.Equal(t, runs, read)
		})
	}
}

// TestDigestRunsOfAFooterThatLies checks that no run lies outside of the file.
func TestDigestRunsOfAFooterThatLies(t *testing.T) {
	f := footerOf(2, 4, 1<<20)
	f.RowGroups[0].Columns[0] = format.Chunk{}
	f.RowGroups[0].Columns[1].Offset = -1
	f.RowGroups[0].Columns[2].Compressed = 1 << 62
	f.RowGroups[1].Columns[3].Offset = f.FooterOffset - 1
	for i, r := range DigestRuns(f) {
		assert.LessOrEqual(t, r.From+r.Len, uint64(f.Size), i)
	}
}

// recordingReader notes the reads of a partition.
type recordingReader struct {
	io.ReaderAt
	reads []Run
}

func (r *recordingReader) ReadAt(b []byte, off int64) (int, error) {
	r.reads = append(r.reads, Run{uint64(off), uint64(len(b))})
	return r.ReaderAt.ReadAt(b, off)
}

// TestDigestReads checks that a partition at hand is read only where its digest is over it, and that a partition
// elsewhere is read with fewer requests and short gaps. Both have the same digest.
func TestDigestReads(t *testing.T) {
	for name, c := range map[string]struct {
		file      *format.File
		near, far int // reads
	}{
		"whole":         {footerOf(2, 3, 10_000), 1, 1},
		"near":          {footerOf(16, 8, 6000), 64 + 1, 1},
		"two reads":     {footerOf(32, 8, 6000), 64 + 1, 2},
		"far apart":     {footerOf(2, 2, 20<<20), 61, 61}, // places at the ends of chunks touch
		"a long footer": {&format.File{Size: 3<<20 + 5, FooterOffset: 4}, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			data := bytes.Repeat([]byte("some bytes"), int(c.file.Size/10+1))[:c.file.Size]
			here := &recordingReader{ReaderAt: bytes.NewReader(data)}
			there := &recordingReader{ReaderAt: bytes.NewReader(data)}
			near := &Partition{Size: c.file.Size, File: c.file, reader: here}
			far := &Partition{Size: c.file.Size, File: c.file, reader: farReader{there}}
			want, err := near.digestContent(t.Context())
			require.NoError(t, err)
			got, err := far.digestContent(t.Context())
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Equal(t, near.DigestReads(), here.reads)
			assert.Equal(t, far.DigestReads(), there.reads)
			assert.Len(t, here.reads, c.near)
			assert.Len(t, there.reads, c.far)
			digested, readHere, readThere := uint64(0), uint64(0), uint64(0)
			for _, r := range DigestRuns(c.file) {
				digested += r.Len
			}
			for _, r := range here.reads {
				readHere += r.Len
			}
			assert.Equal(t, digested, readHere)
			for _, r := range there.reads {
				readThere += r.Len
				assert.LessOrEqual(t, r.Len, uint64(digestRead))
			}
			assert.LessOrEqual(t, readThere-digested, uint64(c.near-c.far)*digestGap)
		})
	}
}

// TestDigestIsMadeOnce checks that the uses of an opened file's digest do not read the file.
func TestDigestIsMadeOnce(t *testing.T) {
	data := foreignparquettest.ManyRowGroups(2000)
	require.Greater(t, len(data), wholePartition)
	r := &recordingReader{ReaderAt: bytes.NewReader(data)}
	p, err := Open(t.Context(), "p", r, int64(len(data)), program.Parquet, Options{})
	require.NoError(t, err)
	opened := len(r.reads)
	require.Equal(t, p.DigestReads(), r.reads[opened-len(p.DigestReads()):])
	for range 3 {
		assert.EqualValues(t, p.Digest(), p.Describe().Content)
		p.DigestRuns()
	}
	assert.Len(t, r.reads, opened)
}

// TestDigestContent checks that the digest is over the bytes of all runs, and that it changes with each of them.
func TestDigestContent(t *testing.T) {
	for name, file := range map[string]*format.File{
		"whole": footerOf(2, 3, 10_000), "places": footerOf(3, 5, 40_000), "far apart": footerOf(2, 2, 3<<19),
	} {
		t.Run(name, func(t *testing.T) {
			data := bytes.Repeat([]byte("some bytes"), int(file.Size/10+1))[:file.Size]
			digest := func() [sha256.Size]byte {
				p := &Partition{Size: file.Size, File: file, reader: bytes.NewReader(data)}
				sum, err := p.digestContent(t.Context())
				require.NoError(t, err)
				return sum
			}
			runs, want := DigestRuns(file), sha256.New()
			for _, r := range runs {
				want.Write(data[r.From : r.From+r.Len])
			}
			good := digest()
			assert.Equal(t, want.Sum(nil), good[:])
			for _, r := range runs[:min(len(runs), 5)] {
				for _, at := range []uint64{r.From, r.From + r.Len - 1} {
					data[at] ^= 1
					assert.NotEqual(t, good, digest(), at)
					data[at] ^= 1
				}
			}
			p := &Partition{Size: file.Size, File: file, reader: bytes.NewReader(data[:file.Size/2])}
			_, err := p.digestContent(t.Context())
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

func TestParseRuns(t *testing.T) {
	for text, refused := range map[string]bool{
		"0+10": false, "0+0": false, "0+4,4+6": false, "": true, "0": true, "0+11": true, "10+0": false, "11+0": true,
		"4+4,7+1": true, "-1+2": true, "0+-1": true, "0+99999999999999999999": true, "0+1,": true,
		strings.TrimSuffix(strings.Repeat("9+0,", maxRuns), ","):   false,
		strings.TrimSuffix(strings.Repeat("9+0,", maxRuns+1), ","): true,
	} {
		_, err := ParseRuns(text, 10)
		assert.Equal(t, refused, err != nil, "%.20q: %v", text, err)
	}
}

func FuzzParseRuns(f *testing.F) {
	for _, text := range []string{"", "0+10", "0+4,8+2", "4+4,7+1", "9223372036854775807+1", "1+9223372036854775807"} {
		f.Add(text, int64(10))
	}
	f.Fuzz(func(t *testing.T, text string, size int64) {
		runs, err := ParseRuns(text, size)
		if err != nil {
			return
		}
		at := uint64(0)
		for _, r := range runs {
			if r.From < at || r.From+r.Len > uint64(size) {
				t.Fatalf("%d+%d of %d behind %d", r.From, r.Len, size, at)
			}
			at = r.From + r.Len
		}
	})
}

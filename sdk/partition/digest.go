package partition

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// These constants say which bytes of a Parquet partition its digest is over. They are part of a manifest's version.
const (
	// wholePartition is the largest size of a partition that is digested whole.
	wholePartition = 256 << 10
	// digestPlaces is the number of places of a larger partition that are digested beside its footer.
	digestPlaces = 64
	// placeBytes is the length of a place in a column chunk.
	placeBytes = 4 << 10
	// wholeGroup is the largest size of a row group that is digested whole if one of its chunks has a place.
	wholeGroup = 8 << 10
)

// These constants say how the places are read. They do not enter the digest.
const (
	// digestGap is the largest gap between two places of a partition elsewhere that is read with them: a request over a
	// network costs more than these bytes. Of other partitions no gap is read.
	digestGap = 64 << 10
	// digestRead is the largest length of one read.
	digestRead = 1 << 20
)

// goldenRatio is 2^64 divided by the golden ratio: its multiples spread evenly over 64 bits.
const goldenRatio = 0x9e3779b97f4a7c15

// DigestRuns returns the runs of a Parquet file's bytes that its partition's digest is over, in ascending order and
// apart. It depends on the footer alone, so that every copy of a file has the same digest.
//
// A file of at most 256 KiB is one run. A larger one has its footer and 64 places of 4 KiB: with up to 64 column chunks
// they are spread evenly over each chunk, and otherwise each lies in a chunk of its own, so that every row group has a
// place if there are at most 64, and every column too. A row group of at most 8 KiB that has a place is digested whole.
func DigestRuns(f *format.File) []Run {
	size := uint64(max(f.Size, 0))
	if size <= wholePartition {
		return []Run{{0, size}}
	}
	footer := uint64(f.FooterOffset)
	runs := append(samples(f), Run{footer, size - footer})
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Compare(a.From, b.From) })
	apart := runs[:1]
	for _, r := range runs[1:] {
		last := &apart[len(apart)-1]
		if end := last.From + last.Len; r.From <= end {
			last.Len = max(end, r.From+r.Len) - last.From
			continue
		}
		apart = append(apart, r)
	}
	return apart
}

// samples returns the places of the column chunks that are digested, in any order.
func samples(f *format.File) []Run {
	groups, columns := len(f.RowGroups), len(f.Leaves)
	chunks := min(groups*columns, digestPlaces)
	if chunks == 0 {
		return nil
	}
	perChunk := digestPlaces / chunks
	runs := make([]Run, 0, digestPlaces+1)
	for i := range chunks {
		g, c := i/columns, i%columns
		if groups*columns > chunks {
			// Chunks of one row group are of different columns: a group has fewer places than there are columns.
			g = i * groups / chunks
			if columns > chunks {
				c = i * columns / chunks
			}
		}
		if from, to := groupSpan(f, &f.RowGroups[g]); to-from <= wholeGroup {
			runs = append(runs, Run{from, to - from})
			continue
		}
		chunk := &f.RowGroups[g].Columns[c]
		if !liesBeforeFooter(f, chunk) {
			continue
		}
		from, bytes := uint64(chunk.Offset), uint64(chunk.Compressed)
		if bytes <= placeBytes {
			runs = append(runs, Run{from, bytes})
			continue
		}
		room := bytes - placeBytes
		for j := range perChunk {
			at, _ := bits.Mul64(room+1, uint64(i+1)*goldenRatio)
			if perChunk > 1 {
				high, low := bits.Mul64(room, uint64(j))
				at, _ = bits.Div64(high, low, uint64(perChunk-1))
			}
			runs = append(runs, Run{from + at, placeBytes})
		}
	}
	return runs
}

// liesBeforeFooter reports whether a chunk has bytes, and whether the footer says that they lie before it. Footers do
// not say where encrypted chunks lie.
func liesBeforeFooter(f *format.File, c *format.Chunk) bool {
	return c.Offset >= 0 && c.Compressed > 0 && c.Compressed <= f.FooterOffset-c.Offset
}

// groupSpan returns where the bytes of a row group begin and end; 0, 0 if it has none.
func groupSpan(f *format.File, g *format.RowGroup) (from, to uint64) {
	for i := range g.Columns {
		c := &g.Columns[i]
		if !liesBeforeFooter(f, c) {
			continue
		}
		begin, end := uint64(c.Offset), uint64(c.Offset+c.Compressed)
		if to == 0 {
			from = begin
		}
		from, to = min(from, begin), max(to, end)
	}
	return from, to
}

// digestContent returns the SHA-256 over the runs that DigestRuns names. A reader that reads ahead learns of all reads
// before the first, so that they wait for a network together.
func (p *Partition) digestContent(ctx context.Context) (sum [sha256.Size]byte, err error) {
	runs, reads, r := p.DigestRuns(), p.DigestReads(), p.readerUntil(ctx)
	longest := uint64(0)
	for i := range reads {
		longest = max(longest, reads[i].Len)
	}
	if ahead, ok := p.AheadReader(); ok {
		ahead.Prepare(reads)
	}
	hash, buffer := sha256.New(), make([]byte, longest)
	for _, read := range reads {
		b := buffer[:read.Len]
		if n, err := r.ReadAt(b, int64(read.From)); n < len(b) {
			return sum, fmt.Errorf("read %d bytes at %d for its digest: %w", len(b), read.From, err)
		}
		end := read.From + read.Len
		for len(runs) > 0 && runs[0].From < end {
			from, to := max(runs[0].From, read.From), min(runs[0].From+runs[0].Len, end)
			hash.Write(b[from-read.From : to-read.From])
			if to < runs[0].From+runs[0].Len {
				break
			}
			runs = runs[1:]
		}
	}
	hash.Sum(sum[:0])
	return sum, nil
}

// DigestReads returns the reads by which Open makes the digest of a Parquet partition, in ascending order. They are
// DigestRuns, but a partition that lies elsewhere has fewer reads, which also read the gaps between near runs.
func (p *Partition) DigestReads() []Run {
	if p.Remote() {
		return joinRuns(p.DigestRuns(), digestGap)
	}
	return joinRuns(p.DigestRuns(), 0)
}

// joinRuns returns reads of at most digestRead bytes that hold all runs. A gap of at most gap bytes between two runs is
// read with them.
func joinRuns(runs []Run, gap uint64) []Run {
	var reads []Run
	for _, run := range runs {
		for at, end := run.From, run.From+run.Len; at < end; {
			to := min(end, at+digestRead)
			if n := len(reads) - 1; n >= 0 && at <= reads[n].From+reads[n].Len+gap && to-reads[n].From <= digestRead {
				reads[n].Len = to - reads[n].From
			} else {
				reads = append(reads, Run{at, to - at})
			}
			at = to
		}
	}
	return reads
}

// maxRuns is the most runs that DigestRuns returns.
const maxRuns = digestPlaces + 1

// FormatRuns writes runs as ParseRuns reads them: 0+262144, or 4+4096,81920+4096.
func FormatRuns(runs []Run) string {
	var b strings.Builder
	for i, r := range runs {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d+%d", r.From, r.Len)
	}
	return b.String()
}

// ParseRuns reads the runs that the digest of a partition of size bytes is over: at most 65, in ascending order and
// apart, inside the partition.
func ParseRuns(s string, size int64) ([]Run, error) {
	parts := strings.SplitN(s, ",", maxRuns+1)
	if len(parts) > maxRuns {
		return nil, fmt.Errorf("more than %d runs", maxRuns)
	}
	runs := make([]Run, 0, len(parts))
	behind := int64(0)
	for _, part := range parts {
		from, length, _ := strings.Cut(part, "+")
		at, err := strconv.ParseInt(from, 10, 64)
		n, err2 := strconv.ParseInt(length, 10, 64)
		if err != nil || err2 != nil || at < behind || n < 0 || n > size-at {
			return nil, fmt.Errorf("%.40q: want runs as FROM+LENGTH, in ascending order, in a partition of %d bytes",
				part, size)
		}
		runs = append(runs, Run{uint64(at), uint64(n)})
		behind = at + n
	}
	return runs, nil
}

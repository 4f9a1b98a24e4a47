package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// shelf is partitions elsewhere, in memory.
type shelf struct {
	mu     sync.Mutex
	files  map[string][]byte
	opened int
	open   map[*borrowed]struct{}
	broken error // of every read
}

func (s *shelf) Learn(dataset.Digest, []api.Source) {}
func (s *shelf) Forget(dataset.Digest)              {}
func (s *shelf) OwnFiles(*dataset.Manifest) []int   { return nil }

func (s *shelf) Open(_ context.Context, _ dataset.Digest, want dataset.Partition) (RemotePartition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &borrowed{Reader: bytes.NewReader(s.files[want.Name]), shelf: s}
	s.open[b] = struct{}{}
	s.opened++
	return b, nil
}

// counts returns how many partitions were opened, and how many are open.
func (s *shelf) counts() (opened, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, len(s.open)
}

// borrowed is one of them.
type borrowed struct {
	*bytes.Reader
	shelf *shelf
}

func (b *borrowed) ReadAtContext(_ context.Context, p []byte, off int64) (int, error) {
	b.shelf.mu.Lock()
	err := b.shelf.broken
	b.shelf.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return b.ReadAt(p, off)
}

func (b *borrowed) Prepare([]partition.Run)              {}
func (b *borrowed) Expect([]string, int64, int64) func() { return func() {} }
func (b *borrowed) Describe(*partition.Partition)        {}
func (b *borrowed) CheckUnchanged(context.Context) error {
	return nil
}

func (b *borrowed) Close() error {
	b.shelf.mu.Lock()
	defer b.shelf.mu.Unlock()
	delete(b.shelf.open, b)
	return nil
}

// TestPartitionsElsewhereAreKeptOpen checks that keptPartitions partitions that nothing reads stay open, those used
// last; that the partition of a split stays open while it is read; that a partition is opened again after a read of
// it failed; and that the partitions of a job are closed with the job.
func TestPartitionsElsewhereAreKeptOpen(t *testing.T) {
	file := numbered(t, 0, 40)
	s := &shelf{files: map[string][]byte{}, open: map[*borrowed]struct{}{}}
	var list []dataset.Partition
	for i := range keptPartitions + 1 {
		name := fmt.Sprintf("p%02d", i)
		s.files[name] = file
		p, err := partition.Open(t.Context(), name, bytes.NewReader(file), int64(len(file)), program.Parquet,
			partition.Options{})
		require.NoError(t, err)
		list = append(list, p.Describe())
	}
	d, err := OpenElsewhere(t.Context(), DriveOptions{Name: "cpu"}, s)
	require.NoError(t, err)
	job := dataset.Digest{1}
	use := func(i int) *openPartition {
		p, err := d.elsewhere.acquire(t.Context(), job, list[i])
		require.NoError(t, err)
		return p
	}
	for i := range keptPartitions {
		d.elsewhere.release(use(i))
	}
	opened, open := s.counts()
	assert.Equal(t, []int{keptPartitions, keptPartitions}, []int{opened, open})
	held := use(0) // the one that was used longest ago
	d.elsewhere.release(use(keptPartitions))
	_, open = s.counts()
	assert.Equal(t, keptPartitions+1, open, "one is read, the others are kept")
	d.elsewhere.release(held)
	_, open = s.counts()
	assert.Equal(t, keptPartitions, open)
	opened, _ = s.counts()
	d.elsewhere.release(use(0))
	again, _ := s.counts()
	assert.Equal(t, opened, again, "it was used last and stayed open")

	failed := use(0)
	d.elsewhere.fail(t.Context(), failed, errors.New("the data are bad"))
	assert.Same(t, failed, use(0), "data that are bad stay bad")
	d.elsewhere.release(failed)
	d.elsewhere.fail(t.Context(), failed, fmt.Errorf("%w: gone", ErrSource))
	other := use(0)
	assert.NotSame(t, failed, other)
	count, text := d.SourceFailures()
	assert.EqualValues(t, 1, count)
	assert.Contains(t, text, "gone")
	d.elsewhere.release(failed)
	d.elsewhere.release(other)

	s.broken = fmt.Errorf("%w: no route", ErrSource)
	d.elsewhere.forget(job)
	_, open = s.counts()
	assert.Zero(t, open)
	_, err = d.elsewhere.acquire(t.Context(), job, list[0])
	require.ErrorIs(t, err, ErrSource)
	_, open = s.counts()
	assert.Zero(t, open, "what could not be opened is not kept")
	require.NoError(t, d.Close())
	_, err = d.elsewhere.acquire(t.Context(), job, list[0])
	require.ErrorIs(t, err, api.ErrUnknownDrive)
}

// TestTextElsewhereIsRefused checks that a partition of text is refused for its format, and one that cannot be read is
// not.
func TestTextElsewhereIsRefused(t *testing.T) {
	s := &shelf{files: map[string][]byte{"day_0": []byte("1\t2\t3\n")}, open: map[*borrowed]struct{}{}}
	d, err := OpenElsewhere(t.Context(), DriveOptions{Name: "cpu"}, s)
	require.NoError(t, err)
	open := func(name string) error {
		_, err := d.elsewhere.acquire(t.Context(), dataset.Digest{1},
			dataset.Partition{Name: name, Bytes: int64(len(s.files[name])), Rows: 1, RowGroups: []int64{1}})
		return err
	}
	err = open("day_0")
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "day_0 is none: jobs over text are for drives and nodes that hold it")
	s.files["day_0"] = make([]byte, 100)
	s.broken = fmt.Errorf("%w: no route", ErrSource)
	err = open("day_0")
	require.ErrorIs(t, err, ErrSource)
	require.NotErrorIs(t, err, ErrFormat)
	require.NoError(t, d.Close())
}

func TestDrivesElsewhereThatCannotBe(t *testing.T) {
	for _, o := range []DriveOptions{
		{}, {Name: "cpu", Engine: EngineDrive}, {Name: "cpu", Source: program.CriteoTSV},
		{Name: "card", Engine: EngineCPU, Accelerator: "mem:?size=0&slm=8MiB"},
		{Name: "card", Accelerator: "file:/nowhere/card"},
	} {
		_, err := OpenElsewhere(t.Context(), o, &shelf{})
		assert.Error(t, err, "%+v", o)
	}
}

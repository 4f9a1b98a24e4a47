package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/target"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
)

// serveCard serves a drive without flash on loopback.
func serveCard(t testing.TB) (uri string, end func()) {
	served, err := target.Start(target.Options{
		Drive: csd.Options{Diskless: true, SLMBytes: 16 << 20}, Listen: "127.0.0.1:0", ShutdownTime: time.Millisecond,
	})
	require.NoError(t, err)
	end = sync.OnceFunc(func() { _ = served.Close() })
	t.Cleanup(end)
	return served.URI(), end
}

// TestFedDrivesMakeTheSame: a drive without flash that is given files by path, one beside files, and one beside a plain
// drive make the mini-batches that the node's CPU makes. Reports say who computed, and what crossed each link.
func TestFedDrivesMakeTheSame(t *testing.T) {
	contents := map[string][]byte{"a.parquet": numbered(t, 0, 505), "b.parquet": numbered(t, 1000, 240)}
	paths := write(t, contents)
	folder := filepath.Dir(paths[0])
	card, _ := serveCard(t)
	var want []int64
	for _, c := range []struct {
		name, engine string
		open         func() (*Drive, error)
	}{
		{"cpu", "cpu", func() (*Drive, error) {
			return OpenFiles(t.Context(), source.ParseLocations(paths...), DriveOptions{Engine: EngineCPU})
		}},
		{"files by path", "drive (vendor), fed by the host", func() (*Drive, error) {
			return OpenDrive(t.Context(), card, DriveOptions{Members: []string{paths[0], folder + "/b*"}})
		}},
		{"beside files", "drive (standard), fed by the host", func() (*Drive, error) {
			return OpenFiles(t.Context(), source.ParseLocations(paths...),
				DriveOptions{Accelerator: card + "?commands=standard"})
		}},
		{"beside a plain drive", "drive (vendor), fed by the host", func() (*Drive, error) {
			return OpenDrive(t.Context(), onDrive(t, contents), DriveOptions{
				Accelerator: "mem:?size=0&slm=16MiB", Device: sdk.DeviceOptions{Plain: false},
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := c.open()
			require.NoError(t, err)
			m := openManager(t, d)
			j, plan := prepare(t, m, dataset.Options{SplitBatches: 7})
			var rows []int64
			for split := range plan.All() {
				s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: d.Name(), Split: split})
				require.NoError(t, err)
				got, _ := take(t, s)
				rows = append(rows, got...)
				require.NoError(t, s.Close())
			}
			require.Len(t, rows, 745)
			if want == nil {
				want = rows
			}
			assert.Equal(t, want, rows)
			list, err := m.Report(t.Context(), j.Digest)
			require.NoError(t, err)
			assert.Equal(t, c.engine, list[0].Engine)
			assert.Equal(t, c.name != "cpu", d.Fed())
			if d.Fed() {
				assert.Equal(t, list[0].BytesMoved, list[0].BytesStored)
				require.NotNil(t, list[0].Counters)
				assert.Zero(t, list[0].Counters.FlashToDRAMBytes)
				assert.Positive(t, list[0].Counters.HostToDRAMBytes)
			}
			_, err = m.Busy(t.Context(), d)
			require.NoError(t, err)
			assert.Equal(t, d.Fed(), m.Status(d).Image != "")
		})
	}
}

// TestACardThatDies: the split that a drive without flash was making fails with an error that names it, and is made
// elsewhere. No mini-batch is lost or made twice.
func TestACardThatDies(t *testing.T) {
	leaks.Check(t)
	paths := write(t, map[string][]byte{"a.parquet": numbered(t, 0, 3000)})
	uri, end := serveCard(t)
	dying, err := OpenDrive(t.Context(), uri, DriveOptions{
		Name: "card", Members: paths, Device: sdk.DeviceOptions{TCP: tcp.DialOptions{GiveUp: 100 * time.Millisecond}},
	})
	require.NoError(t, err)
	other := files(t, paths, DriveOptions{Name: "cpu", Engine: EngineCPU})
	m, err := NewManager(Options{MeasureTime: time.Millisecond}, dying, other)
	require.NoError(t, err)
	defer func() { _ = m.Close() }() // the card is gone
	j, plan := prepare(t, m, dataset.Options{SplitBatches: 300})
	var delivered []uint64
	for split := range plan.All() {
		s, err := m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: "card", Split: split})
		require.NoError(t, err)
		for err == nil {
			if len(delivered) == 20 {
				end()
			}
			var mb interface{ Release() }
			b, nerr := s.Next(t.Context())
			if err = nerr; err == nil {
				delivered, mb = append(delivered, b.Name.Number), b
				mb.Release()
			}
		}
		require.ErrorIs(t, err, tcp.ErrLost)
		require.ErrorContains(t, err, "a.parquet")
		require.NoError(t, s.Close())
		require.Less(t, len(delivered), split.Fragments)
		s, err = m.Open(t.Context(), api.SplitRequest{Job: j.Digest, Drive: "cpu", Split: split, From: len(delivered)})
		require.NoError(t, err)
		_, rest := take(t, s)
		require.NoError(t, s.Close())
		delivered = append(delivered, rest...)
	}
	require.Len(t, delivered, 300)
	for i, n := range delivered {
		require.EqualValues(t, i, n)
	}
}

// TestAcceleratorsRefused says what cannot be.
func TestAcceleratorsRefused(t *testing.T) {
	leaks.Check(t)
	paths := write(t, map[string][]byte{"a.parquet": numbered(t, 0, 30)})
	plain := "file:" + t.TempDir() + "/plain.flash"
	dev, err := sdk.Create(t.Context(), plain+"?size=1MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	card := "mem:?size=0&slm=8MiB"
	for name, c := range map[string]struct {
		open func() (*Drive, error)
		says string
	}{
		"the CPU computes too": {func() (*Drive, error) {
			return OpenFiles(t.Context(), source.ParseLocations(paths...), DriveOptions{Accelerator: card, Engine: EngineCPU})
		}, "leave one of the two out"},
		"no such drive": {func() (*Drive, error) {
			return OpenFiles(t.Context(), source.ParseLocations(paths...), DriveOptions{Accelerator: "file:/nowhere/card"})
		}, "accelerator: "},
		"a card beside a card": {func() (*Drive, error) {
			return OpenDrive(t.Context(), card, DriveOptions{Accelerator: card, Members: paths})
		}, "computes itself"},
		"a drive that only stores": {func() (*Drive, error) {
			return OpenFiles(t.Context(), source.ParseLocations(paths...), DriveOptions{Accelerator: plain,
				Device: sdk.DeviceOptions{Plain: true}})
		}, "does not compute"},
		"no files": {func() (*Drive, error) {
			return OpenDrive(t.Context(), card, DriveOptions{})
		}, "name the files"},
		"files that are not there": {func() (*Drive, error) {
			return OpenDrive(t.Context(), card, DriveOptions{Members: []string{filepath.Dir(paths[0]) + "/*.tsv"}})
		}, "no file is called"},
		"a folder": {func() (*Drive, error) {
			return OpenDrive(t.Context(), card, DriveOptions{Members: []string{filepath.Dir(paths[0])}})
		}, "not a regular file"},
		"more memory than there is": {func() (*Drive, error) {
			d, err := OpenDrive(t.Context(), card, DriveOptions{Members: paths, SLM: 1 << 30})
			if err != nil {
				return nil, err
			}
			m := openManager(t, d)
			spec, err := pipeline.Parse([]byte(doc))
			require.NoError(t, err)
			err = m.Prepare(t.Context(), &api.Job{Pipeline: spec, Plan: dataset.Options{Batch: 10, SplitBatches: 1}})
			require.ErrorIs(t, err, sdk.ErrSLMFull)
			return nil, err
		}, "slm="},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := c.open()
			require.Error(t, err)
			assert.Nil(t, d)
			assert.True(t, strings.Contains(err.Error(), c.says), fmt.Sprint(err))
		})
	}
	_, err = os.Stat(paths[0])
	require.NoError(t, err)
}

package sdk_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/faults"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/tensor"
)

// onDrive opens an in-process drive whose namespace is the file.
func onDrive(t testing.TB, data []byte, o sdk.FilesOptions) (*sdk.Device, *partition.Partition) {
	path := filepath.Join(t.TempDir(), "part-0.parquet")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	other := filepath.Join(t.TempDir(), "before.bin")
	require.NoError(t, os.WriteFile(other, make([]byte, 5000), 0o600))
	dev, extents, err := sdk.OpenFiles(context.Background(), []string{other, path}, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	return dev, readFrom(t, dev, data, extents[1])
}

// readFrom opens a partition that lies in one extent of a drive, through the drive.
func readFrom(t testing.TB, dev *sdk.Device, data []byte, e partition.Extent) *partition.Partition {
	r := io.NewSectionReader(dev, e.Device, e.Len)
	p, err := partition.Open(context.Background(), "part-0.parquet", r, int64(len(data)), program.Parquet,
		partition.Options{Extents: []partition.Extent{e}})
	require.NoError(t, err)
	return p
}

func startOn(
	t testing.TB, dev *sdk.Device, prog *program.Program, schema *tensor.Schema, o processor.Options,
) processor.Processor {
	p, err := sdk.NewProcessor(context.Background(), dev, prog, schema, o)
	require.NoError(t, err)
	return p
}

// TestDrivesAgree runs both command sets, both block sizes, drives that lend their memory and drives that do not. The
// drive's own counters show the bytes that were planned.
func TestDrivesAgree(t *testing.T) {
	ctx := context.Background()
	l := processortest.Layout{Rows: 4000, Group: 1500, Page: 2 << 10, Codec: &pq.Snappy, Seed: 11}
	data := processortest.WriteParquet(t, l)
	run := processor.Run{First: 123, Rows: int64(l.Rows) - 200, Batch: 256}
	for kind, build := range processortest.Programs() {
		prog, schema := build()
		run.Partition = processortest.Open(t, data, true)
		want := processortest.Reference(t, prog, schema, run)
		for _, set := range []sdk.Commands{sdk.Vendor, sdk.Standard} {
			for _, lba := range []int{512, 4096} {
				for _, slm := range []int64{16 << 20, 256 << 10} {
					noMap := lba == 512
					t.Run(fmt.Sprintf("%s, %s, %d-byte blocks, slm %d", kind, set, lba, slm), func(t *testing.T) {
						dev, part := onDrive(t, data, sdk.FilesOptions{
							LBA: lba, SLM: slm, Commands: set, DeviceOptions: sdk.DeviceOptions{NoMap: noMap},
						})
						before, err := dev.Counters(ctx)
						require.NoError(t, err)
						p := startOn(t, dev, prog, schema, processor.Options{})
						run := run
						run.Partition = part
						processortest.RequireSame(t, want, processortest.MiniBatches(t, p, run))
						s := p.Stats()
						after, err := dev.Counters(ctx)
						require.NoError(t, err)
						moved := after.FlashToDRAM.Bytes - before.FlashToDRAM.Bytes
						lent := after.FlashLent.Bytes - before.FlashLent.Bytes
						if slm > 1<<20 {
							assert.Equal(t, uint64(s.BytesPlanned), moved+lent)
						} else { // windows of before lie where others are written, so that copies that were put off are made
							assert.GreaterOrEqual(t, moved+lent, uint64(s.BytesPlanned))
							assert.LessOrEqual(t, max(moved, lent), uint64(s.BytesPlanned))
						}
						assert.Equal(t, uint64(s.Slices), after.Executions-before.Executions)
						assert.Equal(t, run.Rows, s.Rows)
						copied := after.FlashToDRAM.Nanoseconds - before.FlashToDRAM.Nanoseconds
						assert.GreaterOrEqual(t, uint64(s.Move), copied, "the drive tells what its copies took")
						assert.Positive(t, s.Wait)
						if slm > 1<<20 {
							assert.Equal(t, noMap, s.BytesLent == 0)
							assert.Equal(t, noMap, s.BytesFetched > 0)
						}
						require.NoError(t, p.Close())
						after, err = dev.Counters(ctx)
						require.NoError(t, err)
						assert.Zero(t, after.SLMReserved, "close gives the memory back")
					})
				}
			}
		}
	}
}

// TestDriveFaults breaks a drive in the ways that it can break.
func TestDriveFaults(t *testing.T) {
	ctx := context.Background()
	l := processortest.Layout{Rows: 2000, Group: 700, Page: 2 << 10, Seed: 12}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Jagged()
	for name, c := range map[string]struct {
		script faults.Script
		want   error
	}{
		"a read fails": {faults.Script{Fail: []faults.Fail{{
			Operation: faults.Read, LBA: 16, Blocks: uint64(len(data) / 1024), Status: nvme.UnrecoveredReadError,
			Count: faults.Count{Times: faults.Always},
		}}}, nvme.UnrecoveredReadError},
		"an execution fails": {faults.Script{Execute: []faults.Execute{{
			Status: nvme.InternalError, Count: faults.Count{After: 2, Times: 1},
		}}}, nvme.InternalError},
	} {
		t.Run(name, func(t *testing.T) {
			injector, err := faults.New(new(faults.Script), faults.Options{})
			require.NoError(t, err)
			dev, part := onDrive(t, data, sdk.FilesOptions{
				SLM: 16 << 20, DeviceOptions: sdk.DeviceOptions{WrapFlash: injector.Flash, WrapCompute: injector.Compute},
			})
			p := startOn(t, dev, prog, schema, processor.Options{})
			defer p.Close()
			require.NoError(t, injector.Replace(&c.script))
			_, err = processortest.Collect(p, processor.Run{Partition: part, Rows: part.Rows, Batch: 100})
			require.ErrorIs(t, err, c.want)
			assert.ErrorContains(t, err, part.Name)
		})
	}
	t.Run("a plain drive does not compute", func(t *testing.T) {
		dev, _ := onDrive(t, data, sdk.FilesOptions{DeviceOptions: sdk.DeviceOptions{Plain: true}})
		_, err := sdk.NewProcessor(ctx, dev, prog, schema, processor.Options{})
		assert.ErrorIs(t, err, sdk.ErrNoCompute)
	})
	t.Run("others hold the memory", func(t *testing.T) {
		dev, _ := onDrive(t, data, sdk.FilesOptions{SLM: 1 << 20})
		p := startOn(t, dev, prog, schema, processor.Options{SLM: 800 << 10})
		_, err := sdk.NewProcessor(ctx, dev, prog, schema, processor.Options{SLM: 800 << 10})
		assert.ErrorIs(t, err, sdk.ErrSLMFull)
		require.NoError(t, p.Close())
		p = startOn(t, dev, prog, schema, processor.Options{SLM: 800 << 10})
		require.NoError(t, p.Close())
	})
}

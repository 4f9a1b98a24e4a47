package sdk_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/hosttest"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
	"github.com/millrace/millrace/sdk/tensor"
)

// served is a drive that holds a file, behind a loopback address.
func served(t *testing.T, data []byte, slm int64, o tcp.TargetOptions) (uri string, at partition.Extent) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part-0.parquet")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	files, places, err := flash.Files([]string{path}, csd.LBA512, nil)
	require.NoError(t, err)
	drive, err := csd.Open(csd.Options{
		Flash: files, LBA: csd.LBA512, SLMBytes: slm, NQN: "nqn.2024-01.io.millrace:served",
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, drive.Close()) })
	return "tcp://" + hosttest.Serve(t, drive.Subsystem(), o) + "/nqn.2024-01.io.millrace:served",
		partition.Extent{Device: places[0].Offset, Len: places[0].Size}
}

// TestDrivesOverTCPAgree shows that a drive on the network computes what the reference computes, with both command
// sets, with digests and without, and for two hosts at once, each in its half of the memory.
func TestDrivesOverTCPAgree(t *testing.T) {
	ctx := context.Background()
	l := processortest.Layout{Rows: 3000, Group: 1100, Page: 2 << 10, Codec: &pq.Snappy, Seed: 21}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Jagged()
	run := processor.Run{First: 10, Rows: int64(l.Rows) - 20, Batch: 256}
	run.Partition = processortest.Open(t, data, true)
	want := processortest.Reference(t, prog, schema, run)
	const slm = 16 << 20
	uri, at := served(t, data, slm, tcp.TargetOptions{MaxH2CData: 4096})
	for _, query := range []string{"?commands=vendor", "?commands=standard&digests=both"} {
		t.Run(query, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 2 {
				dev, err := sdk.Open(ctx, uri+query, sdk.DeviceOptions{})
				require.NoError(t, err)
				defer func() { require.NoError(t, dev.Close()) }()
				run := run
				run.Partition = readFrom(t, dev, data, at)
				p := startOn(t, dev, prog, schema, processor.Options{SLM: slm / 2})
				defer func() { require.NoError(t, p.Close()) }()
				wg.Add(1)
				go func() {
					defer wg.Done()
					got, err := processortest.Collect(p, run)
					assert.NoError(t, err)
					if assert.Len(t, got, len(want)) {
						for i := range want {
							assert.Empty(t, tensor.Diff(want[i], got[i]), "mini-batch %d", i)
						}
					}
					assert.Zero(t, p.Stats().BytesLent, "nothing is mapped over a wire")
				}()
			}
			wg.Wait()
		})
	}
}

// TestMemoryOfAnotherHostOverTCP shows that memory of one host does not exist for another, and is cleared before
// another host gets it.
func TestMemoryOfAnotherHostOverTCP(t *testing.T) {
	ctx := context.Background()
	uri, _ := served(t, make([]byte, 4096), 1<<20, tcp.TargetOptions{})
	a, err := sdk.Open(ctx, uri, sdk.DeviceOptions{})
	require.NoError(t, err)
	b, err := sdk.Open(ctx, uri, sdk.DeviceOptions{})
	require.NoError(t, err)
	defer b.Close()
	mine, err := a.ReserveSLM(ctx, 1<<20)
	require.NoError(t, err)
	require.NoError(t, mine.Store(ctx, 0, []byte("secret")))
	_, err = b.ReserveSLM(ctx, 4096)
	require.ErrorIs(t, err, sdk.ErrSLMFull)
	require.NoError(t, a.Close())
	theirs, err := b.ReserveSLM(ctx, 1<<20)
	require.NoError(t, err)
	got := make([]byte, 6)
	require.NoError(t, theirs.Fetch(ctx, 0, got))
	require.Equal(t, make([]byte, 6), got)
}

// TestKeysOverTCP: a drive that demands a key is opened with it, and the host's demand is met.
func TestKeysOverTCP(t *testing.T) {
	host, err := auth.GenerateKey(auth.SHA256)
	require.NoError(t, err)
	ctrl, err := auth.GenerateKey(auth.SHA256)
	require.NoError(t, err)
	dir := t.TempDir()
	for name, k := range map[string]auth.Key{"host": host, "ctrl": ctrl} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(k.Text()+"\n"), 0o600))
	}
	require.NoError(t, os.WriteFile(dir+"/bad", []byte("DHHC-1:00:x:"), 0o600))
	auth := &tcp.AuthOptions{Keys: map[string]tcp.HostKeys{tcp.AnyHost: {Host: host, Controller: ctrl}}}
	uri, _ := served(t, make([]byte, 4096), 1<<20, tcp.TargetOptions{Auth: auth})
	dev, err := sdk.Open(t.Context(), uri+"?keyfile="+dir+"/host&ctrlkeyfile="+dir+"/ctrl", sdk.DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	for query, says := range map[string]string{
		"":                          "key",
		"?keyfile=" + dir + "/ctrl": "authenticat",
		"?keyfile=" + dir + "/none": "no such file",
		"?keyfile=" + dir + "/bad":  "key in",
	} {
		_, err := sdk.Open(t.Context(), uri+query, sdk.DeviceOptions{})
		require.ErrorContains(t, err, says, query)
		assert.NotContains(t, err.Error(), host.Text())
	}
}

func TestAllowListOverTCP(t *testing.T) {
	uri, _ := served(t, make([]byte, 4096), 1<<20, tcp.TargetOptions{Hosts: []string{"nqn.2024-01.io.millrace:friend"}})
	_, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
	require.ErrorContains(t, err, "allow-list")
	dev, err := sdk.Open(t.Context(), uri+"?hostnqn=nqn.2024-01.io.millrace:friend", sdk.DeviceOptions{})
	require.NoError(t, err)
	_, err = dev.WriteAt(make([]byte, 512), 0)
	require.ErrorIs(t, err, nvme.WriteProtected, "it is files")
	require.NoError(t, dev.Close())
	_, err = sdk.Create(t.Context(), uri, sdk.DeviceOptions{})
	require.ErrorIs(t, err, sdk.ErrURI)
}

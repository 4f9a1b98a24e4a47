// Drive shows how a program embeds a computational storage drive: it makes one in a file, puts training rows on it,
// closes it, opens it again, and has the drive turn the rows into tensors. The drive is an NVMe controller in this
// process; another URI (tcp: or nvme:) opens one elsewhere with the same calls.
//
// It prints what the drive is, what lies on it, and how many rows it preprocessed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout) // an interrupt, too, ends it by its deferred calls: no folder stays
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "drive-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	uri := "file:" + filepath.Join(folder, "d0.flash") + "?size=4MiB&slm=64MiB"
	if err := fill(ctx, uri, 300); err != nil {
		return err
	}
	if err := describe(ctx, out, uri); err != nil {
		return err
	}
	return preprocess(ctx, out, uri)
}

// fill makes a drive and puts a file of rows on its volume.
func fill(ctx context.Context, uri string, rows int) (err error) {
	device, err := sdk.Create(ctx, uri, sdk.DeviceOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	members, err := volume.Open(ctx, device)
	if err != nil {
		return err
	}
	row := "1" + strings.Repeat("\t7", 13) + strings.Repeat("\t0000002a", 26) + "\n"
	text := strings.Repeat(row, rows)
	return members.Put(ctx, "day_0.tsv", int64(len(text)), strings.NewReader(text))
}

// describe opens the drive again and prints its properties and its files.
func describe(ctx context.Context, out io.Writer, uri string) (err error) {
	device, err := sdk.Open(ctx, uri, sdk.DeviceOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	info := device.Info()
	fmt.Fprintf(out, "%d bytes of flash in blocks of %d, %d bytes of memory, %d engine thread\n",
		info.Size, info.BlockSize, info.SLM.Size, info.Threads)
	members, err := volume.Open(ctx, device)
	if err != nil {
		return err
	}
	list, err := members.List(ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		fmt.Fprintf(out, "%s: %d bytes at byte %d\n", m.Name, m.Size, m.Offset)
	}
	return nil
}

// preprocess runs a pipeline over what lies on the drive.
func preprocess(ctx context.Context, out io.Writer, uri string) (err error) {
	spec, err := pipeline.Named("criteo")
	if err != nil {
		return err
	}
	manager, err := local.Open(ctx, local.Config{
		Drives:       []string{uri},
		DriveOptions: host.DriveOptions{Source: program.CriteoTSV},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	job, err := trainmgr.Submit(ctx, manager, trainmgr.Options{
		Pipeline: spec, Batch: 128, Shuffle: dataset.ShuffleNone, Order: dataset.Deterministic, AllDrives: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "mini-batch %d: %d rows, dense [%d, %d], %d ids\n",
			mb.Name.Number, mb.Rows, mb.Rows, len(mb.Schema.Dense), mb.Values())
	}
	return nil
}

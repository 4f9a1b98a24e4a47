// Resume shows a trainer's own loop that survives a kill: after each mini-batch it writes the model and the token of
// the job into one checkpoint, and a trainer that is started again goes on from there. A mini-batch that the
// checkpoint acknowledged never comes again, and every other mini-batch comes again with the same bytes, so the
// model ends as if nothing had happened.
//
// It prints the mini-batches of an undisturbed training, those of one that is killed and started again, and whether
// both ended with the same model.
package main

import (
	"context"
	"encoding/json"
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
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// errKilled stands for the unexpected end of a process.
var errKilled = errors.New("killed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout) // an interrupt, too, ends it by its deferred calls: no folder stays
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "resume-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	data := filepath.Join(folder, "day_0.tsv")
	if err := writeRows(data, 500); err != nil {
		return err
	}

	whole := &trainer{data: data, checkpoint: filepath.Join(folder, "whole.json"), out: out}
	fmt.Fprintln(out, "undisturbed")
	if err := whole.train(ctx, 0); err != nil {
		return err
	}

	fmt.Fprintln(out, "killed in its fourth mini-batch")
	broken := &trainer{data: data, checkpoint: filepath.Join(folder, "broken.json"), out: out}
	if err := broken.train(ctx, 4); !errors.Is(err, errKilled) {
		return fmt.Errorf("the first training ended with %w", err)
	}
	fmt.Fprintln(out, "started again")
	again := &trainer{data: data, checkpoint: broken.checkpoint, out: out}
	if err := again.train(ctx, 0); err != nil {
		return err
	}
	fmt.Fprintln(out, "same model:", again.model == whole.model)
	return nil
}

// trainer is one process of a training.
type trainer struct {
	data       string // file of rows
	checkpoint string // file
	out        io.Writer
	model      weights
}

// weights are the model: a running checksum, which tells the order and the content of everything that was trained on.
type weights struct {
	Bias  float64 `json:"bias"`
	Steps int     `json:"steps"`
}

func (w *weights) step(mb *tensor.MiniBatch) {
	for i, label := range mb.Label {
		w.Bias = w.Bias*0.999 + float64(label)*float64(mb.Dense[i*len(mb.Schema.Dense)])
	}
	w.Steps++
}

// checkpoint holds the state that a trainer must not lose: the model, and the mini-batches that the model has seen.
// Both belong in one file.
type checkpoint struct {
	Model weights        `json:"model"`
	Token *dataset.Token `json:"token"`
}

// train trains from the checkpoint, or from the beginning where there is none. It is killed in mini-batch number
// killIn, counted from 1; 0 lets it live.
func (t *trainer) train(ctx context.Context, killIn int) (err error) {
	var saved checkpoint
	switch b, err := os.ReadFile(t.checkpoint); {
	case err == nil:
		if err := json.Unmarshal(b, &saved); err != nil {
			return err
		}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	t.model = saved.Model

	spec, err := pipeline.Named("criteo")
	if err != nil {
		return err
	}
	manager, err := local.Open(ctx, local.Config{
		Files:        source.ParseLocations(t.data),
		DriveOptions: host.DriveOptions{Source: program.CriteoTSV, SLM: 64 << 20},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	job, err := trainmgr.Submit(ctx, manager, trainmgr.Options{
		Pipeline:  spec,
		Batch:     100,
		Shuffle:   dataset.ShuffleNone,
		Order:     dataset.Deterministic,
		AllDrives: true,
		Resume:    saved.Token,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()

	taken := 0
	for mb, err := range job.MiniBatches(ctx) {
		if err != nil {
			return err
		}
		t.model.step(mb)
		if taken++; taken == killIn {
			return errKilled // trained on, and in no checkpoint: it comes again
		}
		if err := job.Acknowledge(mb.Name); err != nil {
			return err
		}
		if err := t.save(job.Checkpoint()); err != nil {
			return err
		}
		fmt.Fprintf(t.out, "  mini-batch %d\n", mb.Name.Number)
	}
	return nil
}

// save replaces the checkpoint: a rename leaves the old one or the new one, whenever the process ends.
func (t *trainer) save(token dataset.Token) error {
	b, err := json.Marshal(checkpoint{Model: t.model, Token: &token})
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.checkpoint+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(t.checkpoint+".new", t.checkpoint)
}

// writeRows writes rows as Criteo's text: a label, 13 numbers, 26 ids.
func writeRows(path string, rows int) error {
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "%d", i%2)
		for n := range 13 {
			fmt.Fprintf(&b, "\t%d", i+n)
		}
		for n := range 26 {
			fmt.Fprintf(&b, "\t%08x", i*26+n)
		}
		b.WriteString("\n")
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/sdk/cpu"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline"
)

// engineJob is work for the cpu engine alone, which python/speed.py measures beside the ways of Python.
type engineJob struct {
	Files    []string `json:"files"`    // Parquet files with the same columns
	Pipeline string   `json:"pipeline"` // its document in YAML
	Batch    int      `json:"batch"`    // rows of a mini-batch
	Epochs   int      `json:"epochs"`
}

// runEngine reads a job in JSON, has the cpu engine with one thread make all mini-batches, which are given up at once,
// and writes the sample in JSON. The files are read into memory first, which is not counted; reading their footers is.
func runEngine(ctx context.Context, in io.Reader, out io.Writer) error {
	var j engineJob
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("read the job of -engine: %w", err)
	}
	if len(j.Files) == 0 || j.Batch < 1 || j.Epochs < 1 {
		return errors.New("the job of -engine wants files, and a batch and epochs from 1")
	}
	spec, err := pipeline.Parse([]byte(j.Pipeline))
	if err != nil {
		return err
	}
	files := make([][]byte, len(j.Files))
	for i, path := range j.Files {
		if files[i], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	begin, used := time.Now(), cpuSeconds()
	rows, err := j.run(ctx, spec, files)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(sample{Rows: rows, Wall: time.Since(begin).Seconds(), CPU: cpuSeconds() - used})
}

// run makes the mini-batches of all epochs and returns the number of their rows.
func (j *engineJob) run(ctx context.Context, spec *pipeline.Spec, files [][]byte) (rows int64, err error) {
	partitions := make([]*partition.Partition, len(files))
	for i, b := range files {
		if partitions[i], err = open(ctx, &dataset{Path: j.Files[i], Bytes: b}); err != nil {
			return 0, fmt.Errorf("%s: %w", filepath.Base(j.Files[i]), err)
		}
	}
	prog, schema, err := lower(partitions[0], spec)
	if err != nil {
		return 0, err
	}
	o := &ours{data: &dataset{Batch: j.Batch}}
	if o.processor, err = cpu.New(ctx, prog, schema, cpu.Options{Threads: 1}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	for range j.Epochs {
		for _, o.partition = range partitions {
			err := o.turn(ctx, func(n int, _ func() (*block, error)) error {
				rows += int64(n)
				return ctx.Err()
			})
			if err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

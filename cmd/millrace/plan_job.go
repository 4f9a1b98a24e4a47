package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/sizing"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/image"
)

// plan sizes the job of the flags.
func (o *planOptions) plan(ctx context.Context) (*planResult, error) {
	prices, err := o.readPrices()
	if err != nil {
		return nil, err
	}
	table, err := o.readFigures()
	if err != nil {
		return nil, err
	}
	job, need, err := o.job(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.takeFlags(job, &need); err != nil {
		return nil, err
	}
	need.Model = job.Model
	need.T, need.Bytes, need.BytesPerRow = job.T.Value, job.Bytes.Value, job.RowIn.Value
	need.Replicas = o.replicas
	drives, err := capacity.Plan(need, prices)
	if errors.Is(err, capacity.ErrNeed) {
		return nil, cli.WrongUsage(err)
	}
	if err != nil {
		return nil, err
	}
	placements, err := sizing.Plan(job, table, prices)
	if errors.Is(err, sizing.ErrJob) {
		return nil, cli.WrongUsage(err)
	}
	return &planResult{drives, placements}, err
}

// readPrices reads the file of --prices, or returns the built-in prices.
func (o *planOptions) readPrices() (*capacity.Prices, error) {
	if o.prices == "" {
		return capacity.ReadPrices(capacity.DefaultPrices())
	}
	b, err := readDocument(o.prices)
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	p, err := capacity.ReadPrices(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.prices, err)
	}
	return p, nil
}

// readFigures returns the built-in figures, with those of the file of --figures in their place.
func (o *planOptions) readFigures() (*sizing.Table, error) {
	if o.figures == "" {
		return sizing.NewTable(nil)
	}
	b, err := readDocument(o.figures)
	if err != nil {
		return nil, fmt.Errorf("read figures: %w", err)
	}
	t, err := sizing.NewTable(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.figures, err)
	}
	return t, nil
}

// job returns what is known of the job's rows, those of the pipeline or of the model, under the image of --image.
func (o *planOptions) job(ctx context.Context) (*sizing.Job, capacity.Need, error) {
	m, err := o.readImage()
	if err != nil {
		return nil, capacity.Need{}, err
	}
	data, err := o.readData(ctx)
	if err != nil {
		return nil, capacity.Need{}, err
	}
	if o.pipeline != "" {
		return o.pipelineJob(data, m)
	}
	job, need, err := o.modelJob(m)
	if err == nil && data != nil {
		job.Bytes = data.figure(float64(data.bytes), "all columns")
		job.RowIn = data.figure(float64(data.bytes)/float64(data.rows), "all columns")
	}
	return job, need, err
}

// readImage reads the image of --image; nil: there is none.
func (o *planOptions) readImage() (*image.Image, error) {
	if o.image == "" {
		return nil, nil
	}
	return readImage(o.image)
}

// modelJob returns what is known of the model, under an image if it is not nil.
func (o *planOptions) modelJob(m *image.Image) (*sizing.Job, capacity.Need, error) {
	need, _ := capacity.NeedOf(o.model, o.ids)
	job, err := sizing.JobOf(o.model, o.ids)
	if err != nil || m == nil {
		return job, need, err
	}
	if need, err = capacity.NeedUnderImage(o.model, o.ids, m); err != nil {
		return nil, need, fmt.Errorf("%s: %w", o.image, err)
	}
	w, err := capacity.CostOfRow(o.model, o.ids)
	if err != nil {
		return nil, need, err
	}
	return job, need, o.driveOfImage(job, capacity.BatchOf(w), m)
}

// driveOfImage sets the job's drive to the model of one under an image.
func (o *planOptions) driveOfImage(job *sizing.Job, b capacity.Batch, m *image.Image) error {
	drive, err := capacity.DriveOfImage(b, m)
	if err != nil {
		return fmt.Errorf("%s: %w", o.image, err)
	}
	job.Drive = sizing.RatesOf(drive, b)
	return nil
}

// takeFlags takes what the flags say of the job, which holds beside what is known of the model.
func (o *planOptions) takeFlags(job *sizing.Job, need *capacity.Need) (err error) {
	given := func(flag string, v float64) sizing.Figure {
		return sizing.Figure{Value: v, Kind: sizing.Assumed, Source: "given with " + flag}
	}
	if o.rateFile != "" {
		if err := o.takeBench(job, need); err != nil {
			return err
		}
	}
	if o.p > 0 {
		need.P, need.PSource, need.Assumes = o.p, "--p", nil
		job.Drive = sizing.Rates{P: sizing.Figure{Value: o.p, Kind: sizing.Measured,
			Source: "given with --p as measured; command, machine and date are not known to the plan"},
			Memory: sizing.Figure{Source: "P contains the device's memory"}}
	}
	if o.bytesPerRow > 0 {
		job.RowIn = given("--bytes-per-row", o.bytesPerRow)
	}
	if job.RowIn.Value == 0 || need.P == 0 && o.knownOnlyByFlags() {
		return cli.Usagef("--model %q: want rm1 to rm5, dpp-rm1 to dpp-rm3, or give --pipeline with --in, or "+
			"--bytes-per-row and --p, or --p-from", o.model)
	}
	switch {
	case o.tensors > 0:
		job.RowOut = given("--tensor-bytes-per-row", o.tensors)
	case job.RowOut.Value == 0:
		job.RowOut = sizing.Figure{Value: job.RowIn.Value, Kind: sizing.Assumed,
			Source: "as many bytes as a stored row: give --tensor-bytes-per-row"}
	}
	if o.readSize > 0 {
		job.ReadSize = given("--read-bytes", o.readSize)
	}
	if o.size > 0 {
		job.Bytes = given("--size", float64(o.size))
	}
	job.Replicas, job.Trainers, job.Medium = o.replicas, o.nodes, sizing.Medium(o.media)
	job.Growth, job.TGrowth, job.Retention = o.growth, o.tGrowth, o.retention
	need.CPUs = job.Baselines()
	return o.takeDemand(job)
}

// knownOnlyByFlags reports whether the rows are those of no paper's model and of no pipeline, so that flags must
// describe them.
func (o *planOptions) knownOnlyByFlags() bool {
	if o.pipeline != "" {
		return false
	}
	_, known := capacity.NeedOf(o.model, o.ids)
	return !known
}

// takeBench takes what the file of --p-from says.
func (o *planOptions) takeBench(job *sizing.Job, need *capacity.Need) error {
	b, err := readDocument(o.rateFile)
	if err != nil {
		return err
	}
	before := job.Drive.P.Value
	if err := job.TakeRates(b, o.rateFile); err != nil {
		return err
	}
	if job.Drive.P.Value != before {
		need.P, need.PSource, need.Assumes = job.Drive.P.Value, job.Drive.P.Source, nil
	}
	return nil
}

// takeDemand takes T.
func (o *planOptions) takeDemand(job *sizing.Job) (err error) {
	switch {
	case o.t > 0:
		job.T = sizing.Figure{Value: o.t, Kind: sizing.Assumed, Source: "given with --t"}
	case o.gpuRate > 0:
		job.T = sizing.Figure{Value: o.gpuRate * float64(o.gpus), Kind: sizing.Assumed,
			Source: fmt.Sprintf("given: %d GPUs of %.4g rows/s (--gpus, --t-gpu)", o.gpus, o.gpuRate)}
	case o.gpus > 0:
		if job.T, err = sizing.DemandOf(o.model, o.gpus); err != nil {
			return cli.WrongUsage(err)
		}
	}
	if job.T.Value <= 0 {
		return cli.Usagef("--t is wanted: the rows a second that the trainers take; or --gpus")
	}
	return nil
}

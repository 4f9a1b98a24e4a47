package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/capacity"
	"github.com/millrace/millrace/capacity/rowcost"
	"github.com/millrace/millrace/capacity/sizing"
	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// plannedData is the data set of --in: a manifest, or descriptions of files, or both, where the manifest is that of the
// data set and the descriptions are of some of its files.
type plannedData struct {
	names        string // as --in has them
	partitions   int
	bytes, rows  int64
	descriptions []partitionfile.Description
	manifest     *dataset.Manifest // nil where the files' descriptions do not make one
}

// figure returns a figure that was measured of the data set.
func (d *plannedData) figure(value float64, what string) sizing.Figure {
	return sizing.Figure{Value: value, Kind: sizing.Measured, Source: fmt.Sprintf("--in: %d bytes and %s of %s, %s",
		d.bytes, quantity.Of(d.rows, "row"), quantity.Of(d.partitions, "partition"), what)}
}

// readData reads what --in names; nil: nothing.
func (o *planOptions) readData(ctx context.Context) (*plannedData, error) {
	if len(o.in) == 0 {
		return nil, nil
	}
	d := &plannedData{names: strings.Join(o.in, " ")}
	var files []string
	var manifest *dataset.Manifest
	for _, name := range o.in {
		if !strings.HasSuffix(name, ".json") {
			files = append(files, name)
			continue
		}
		m, described, err := readDataDocument(name)
		if err != nil {
			return nil, err
		}
		if m != nil && manifest != nil {
			return nil, cli.Usagef("--in %s: two manifests: a plan is for one data set", d.names)
		}
		if m != nil {
			manifest = m
		}
		d.descriptions = append(d.descriptions, described...)
	}
	described, err := o.describe(ctx, files)
	if err != nil {
		return nil, err
	}
	d.descriptions = append(d.descriptions, described...)
	d.addUp(manifest)
	if d.rows <= 0 || d.bytes <= 0 {
		return nil, fmt.Errorf("--in %s: no rows in %s: a plan wants the bytes of a row", d.names,
			quantity.Of(d.partitions, "partition"))
	}
	return d, nil
}

// addUp adds up the data set: that of the manifest, if there is one, or else the descriptions.
func (d *plannedData) addUp(manifest *dataset.Manifest) {
	if d.manifest = manifest; manifest != nil {
		d.partitions = len(manifest.Partitions)
		for i := range manifest.Partitions {
			d.bytes += manifest.Partitions[i].Bytes
			d.rows += manifest.Partitions[i].Rows
		}
		return
	}
	d.partitions = len(d.descriptions)
	partitions := make([]dataset.Partition, len(d.descriptions))
	for i := range d.descriptions {
		v := &d.descriptions[i]
		d.bytes += v.Bytes
		d.rows += v.Rows
		partitions[i] = dataset.Partition{Name: v.Path, Bytes: v.Bytes, Rows: v.Rows, RowGroups: v.RowGroups}
	}
	d.manifest, _ = dataset.NewManifest(partitions)
}

// splitsAssumption returns what the bytes of a row assume of splits of mini-batches of some rows: that none ends inside
// a row group. It is empty if none does, and where the row groups are not known.
func (d *plannedData) splitsAssumption(batch int) string {
	o := dataset.Options{Batch: batch, Shuffle: dataset.ShuffleNone}
	plan, err := dataset.NewPlan(d.manifest, o)
	if err != nil {
		return ""
	}
	cut, all := 0, 0
	for part := range plan.GroupParts(d.manifest) {
		if part.First == 0 {
			if all++; !part.IsWhole() {
				cut++
			}
		}
	}
	if cut == 0 {
		return ""
	}
	return fmt.Sprintf("drives read each byte of the columns once. Splits of %s of %s end inside %d of %s, whose pages "+
		"there are read more than once: millrace dataset inspect --batch %d says how much that is, and how much less it "+
		"is with --boundary none", quantity.Of(plan.Options().SplitBatches, "mini-batch"), quantity.Of(batch, "row"), cut,
		quantity.Of(all, "row group"), batch)
}

// readDataDocument reads a manifest, or what `millrace dataset inspect --output json` wrote.
func readDataDocument(name string) (*dataset.Manifest, []partitionfile.Description, error) {
	b, err := readDocument(name)
	if err != nil {
		return nil, nil, err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		m, err := dataset.ReadManifest(b)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		return m, nil, nil
	}
	var described []partitionfile.Description
	var wrong *json.UnmarshalTypeError // whose text has names of this program
	err = json.Unmarshal(b, &described)
	if errors.As(err, &wrong) {
		err = fmt.Errorf("byte %d holds a %s", wrong.Offset, wrong.Value)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s is neither a manifest nor what millrace dataset inspect --output json "+
			"writes: %w", name, err)
	}
	for i := range described {
		if v := &described[i]; v.Path == "" || v.Rows < 0 || v.Bytes < 0 {
			return nil, nil, fmt.Errorf("%s: file %d, %q, has %d rows and %d bytes: want what millrace dataset "+
				"inspect --output json writes", name, i, v.Path, v.Rows, v.Bytes)
		}
	}
	return nil, described, nil
}

// describe reads the footers of files.
func (o *planOptions) describe(ctx context.Context, names []string) (list []partitionfile.Description, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	named := source.ParseLocations(names...)
	resolver, err := o.far.resolver(named)
	if err != nil {
		return nil, err
	}
	resolver.Root = source.ParseLocation(o.root)
	files, err := resolver.Find(ctx, named, partitionfile.Parquet)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		v, err := resolver.Describe(ctx, file.Location, partitionfile.Parquet, text.Options{}, false)
		if err != nil {
			return nil, adviseImport(err)
		}
		list = append(list, v)
	}
	return list, nil
}

// pipelineJob returns the job of the pipeline of --pipeline over data, under an image if it is not nil.
func (o *planOptions) pipelineJob(data *plannedData, m *image.Image) (*sizing.Job, capacity.Need, error) {
	var need capacity.Need
	spec, err := o.files.load(o.pipeline)
	if err != nil {
		return nil, need, err
	}
	cost, rows, err := costOfRow(spec, data)
	if err != nil {
		return nil, need, namePipeline(err, o.pipeline)
	}
	source := quantity.Of(len(data.descriptions), "file") + " of --in"
	job := sizing.OwnJob(spec.Name, cost, rows, source)
	job.Bytes = data.figure(float64(data.bytes), "all columns")
	batch := capacity.Batch{Work: cost.Batch(rows), Rows: rows}
	if need, err = capacity.NeedOfBatch(spec.Name, batch, m); err != nil {
		return nil, need, fmt.Errorf("%s: %w", o.image, err)
	}
	need.Assumes = append(need.Assumes, cost.Assumes...)
	if line := data.splitsAssumption(rows); line != "" {
		need.Assumes = append(need.Assumes, line)
	}
	if len(cost.Beyond) > 0 {
		need.Assumes = append(need.Assumes, "the model of drives has no stage for "+strings.Join(cost.Beyond, ", ")+
			": these units are taken to keep up with their neighbours")
	}
	if m != nil {
		err = o.driveOfImage(job, batch, m)
	}
	return job, need, err
}

// costOfRow returns what a row of the data costs a pipeline, and the rows of its mini-batches.
func costOfRow(spec *pipeline.Spec, data *plannedData) (*rowcost.Cost, int, error) {
	if len(data.descriptions) == 0 {
		return nil, 0, cli.Usagef("--pipeline: the manifest of --in %s says nothing of columns: name beside it some of "+
			"its files, or what millrace dataset inspect --output json wrote of them, as --in %s --in "+
			"part-00000.parquet", data.names, data.names)
	}
	var files rowcost.Data
	for i := range data.descriptions {
		if err := files.Add(&data.descriptions[i]); err != nil {
			return nil, 0, err
		}
	}
	resolved, err := resolve.Pipeline(spec, files.Columns())
	if err != nil {
		return nil, 0, err
	}
	lowered, err := lowering.LowerBeforeSelection(resolved)
	if err != nil {
		return nil, 0, err
	}
	cost, err := rowcost.Of(lowered.Program, &files)
	if errors.Is(err, rowcost.ErrData) {
		return nil, 0, fmt.Errorf("--in %s: %w", data.names, err)
	}
	if err == nil && spec.Filter != nil {
		cost.Assumes = append(cost.Assumes, "the filter passes every row: footers do not say how many it passes. If "+
			"it passes one row in n, drives read and decode n times as many rows for the same T")
	}
	return cost, resolved.Batch, err
}

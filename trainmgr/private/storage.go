package private

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
)

// sharedStorage presents the files of this machine to each of the local ranks. The ranks' jobs are one job of the
// manager below, and the process finishes that job when all ranks have ended.
type sharedStorage struct {
	api.Storage
	streams int // Each rank has these at once, so that no rank takes what another waits for.
}

// Dataset implements api.Storage.
func (s sharedStorage) Dataset(ctx context.Context) (*api.Dataset, error) {
	data, err := s.Storage.Dataset(ctx)
	if err != nil {
		return nil, err
	}
	own := *data
	own.Drives = append([]api.Drive(nil), data.Drives...)
	for i := range own.Drives {
		own.Drives[i].Streams = s.streams
	}
	return &own, nil
}

// Finish implements api.Storage. Another rank may still need the job.
func (s sharedStorage) Finish(context.Context, dataset.Digest) error { return nil }

// openStorage opens the files that a trainer names.
func openStorage(ctx context.Context, o *Open, options Options) (m *host.Manager, s sharedStorage, threads int,
	err error) {
	var sources host.Sources
	files := source.ParseLocations(o.Files...)
	if options.Sources != nil {
		if sources, err = options.Sources(files); err != nil {
			return nil, s, 0, &filesError{err}
		}
	}
	names := partitionfile.NamePatterns{Include: o.Include, Exclude: o.Exclude}
	if err := names.Check(); err != nil {
		return nil, s, 0, &OptionError{err.Error()}
	}
	config, err := o.localConfig(ctx, files, partitionfile.Resolver{Opener: sources.Opener, Names: names})
	if err != nil {
		return nil, s, 0, err
	}
	config.Sources = sources
	if len(o.Modules) > 0 {
		config.Engine = host.EngineCPU // the drive made of the files has the stock image, which holds no modules
	}
	config.Manager = host.Options{Logger: options.Logger}
	localRanks := max(o.LocalRanks, 1)
	if config.TrainerCores = o.TrainerCores; config.TrainerCores == 0 {
		config.TrainerCores = localRanks
	}
	config.Threads = o.Threads
	config.Threads = config.EngineThreads(runtime.GOMAXPROCS(0))
	memory := divideEngineMemory(o.EngineBytes, config.Threads, localRanks)
	s.streams, config.Streams = memory.streams, memory.streams*localRanks
	config.StreamMemory, config.SLM = memory.ofStream, memory.reserved
	if m, err = local.Open(ctx, config); err != nil {
		return nil, s, 0, &filesError{err}
	}
	s.Storage = m
	return m, s, config.Threads, nil
}

// localConfig finds the files that locations stand for, and their format.
func (o *Open) localConfig(ctx context.Context, named []source.Location, files partitionfile.Resolver,
) (c local.Config, err error) {
	format := partitionfile.Format(o.InputFormat)
	if format == "" {
		if format, err = files.FindFormat(ctx, named); err != nil {
			return c, &filesError{err}
		}
	}
	parser, known := format.Source()
	if !known {
		return c, &OptionError{fmt.Sprintf("input_format %.40q: want parquet, criteo-tsv or criteo-bin", o.InputFormat)}
	}
	c.Source = parser
	if parser != program.CriteoTSV {
		for name, value := range map[string]string{"label": o.Label, "malformed": o.Malformed} {
			if value != "" {
				return c, &OptionError{fmt.Sprintf("%s %.40q is for criteo-tsv rows, and the files are %s: leave "+
					"it out", name, value, format)}
			}
		}
	}
	switch o.Label {
	case "", "present":
	case "absent":
		c.Text.LabelAbsent = true
	default:
		return c, &OptionError{fmt.Sprintf("label %.40q: want present or absent", o.Label)}
	}
	policies := map[string]text.Policy{"": text.Fail, "fail": text.Fail, "drop": text.Drop, "null": text.Null}
	if c.Text.Policy, known = policies[o.Malformed]; !known {
		return c, &OptionError{fmt.Sprintf("malformed %.40q: want fail, drop or null", o.Malformed)}
	}
	if files.Sort, err = dataset.ParseSort(o.Sort); err != nil {
		return c, wrapOption("sort", err)
	}
	files.Root = source.ParseLocation(o.Root)
	found, err := files.Find(ctx, named, format)
	if err != nil {
		return c, &filesError{err}
	}
	c.Files, c.Names = filename.Locations(found), filename.Names(found)
	return c, nil
}

// jobOptions turns the Open of a trainer into the options of a job.
func (o *Open) jobOptions() (j trainmgr.Options, err error) {
	if j.Pipeline, err = o.pipelineSpec(); err != nil {
		return j, err
	}
	if o.Split != "" {
		split, err := pipeline.ParseValidationSplit(o.Split)
		if err != nil {
			return j, &OptionError{err.Error()}
		}
		if j.Pipeline, err = j.Pipeline.WithSplit(split); err != nil {
			return j, err
		}
	}
	if j.Pipeline, err = local.BindStatistics(j.Pipeline, o.Statistics); err != nil {
		return j, wrapOption("statistics", err)
	}
	if j.Pipeline, err = local.BindVocabularies(j.Pipeline, o.Vocabularies); err != nil {
		return j, wrapOption("vocabularies", err)
	}
	if j.Pipeline, err = local.BindModules(j.Pipeline, o.Modules); err != nil {
		return j, wrapModules(err)
	}
	j.Batch, j.Seed, j.SplitBatches, j.Window = o.Batch, o.Seed, o.SplitBatches, o.Window
	j.Epochs = int(max(o.Epochs, 1))
	j.AllDrives, j.QueueBytes = true, 1 // the buffers are the queue
	j.Share = dataset.Share{Rank: o.Rank, Ranks: max(o.Ranks, 1), KeepTail: o.RankTail == "keep"}
	if o.Boundary != "" {
		err = errors.Join(err, wrapOption("boundary", j.Boundary.UnmarshalText([]byte(o.Boundary))))
	}
	if o.Tail != "" {
		err = errors.Join(err, wrapOption("tail", j.Tail.UnmarshalText([]byte(o.Tail))))
	}
	if o.Shuffle != "" {
		err = errors.Join(err, wrapOption("shuffle", j.Shuffle.UnmarshalText([]byte(o.Shuffle))))
	}
	if o.Order != "" {
		var orderErr error
		j.Order, orderErr = dataset.ParseOrder(o.Order)
		err = errors.Join(err, wrapOption("order", orderErr))
	}
	return j, err
}

// pipelineSpec reads the pipeline: a document, or a text without colon and line end, which is a name.
func (o *Open) pipelineSpec() (*pipeline.Spec, error) {
	if strings.ContainsAny(o.Pipeline, ":\n") {
		return pipeline.Parse([]byte(o.Pipeline))
	}
	spec, err := pipeline.Named(o.Pipeline)
	if err != nil {
		return nil, &pipelineNameError{err}
	}
	return spec, nil
}

// wrapModules names the argument of an error, unless the error is about the functions that the pipeline calls.
func wrapModules(err error) error {
	if functions := (problem.Errors)(nil); errors.As(err, &functions) && functions[0].Path != "" {
		return err
	}
	return wrapOption("modules", err)
}

// wrapOption names the argument that an error is about.
func wrapOption(name string, err error) error {
	if err == nil {
		return nil
	}
	return &OptionError{name + ": " + err.Error()}
}

// processID is this process's number, for the trainer to show.
func processID() int { return os.Getpid() }

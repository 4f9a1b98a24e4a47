package private

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/host/api"
)

// Bounds of the values of an Open.
const (
	maxRanks        = 1 << 16
	maxFiles        = 1 << 20
	maxPatterns     = 1 << 10
	maxVocabularies = 1 << 10
	maxStatistics   = 1 << 8
	maxModules      = 1 << 8
	maxEpochs       = 1 << 32
	maxBuffer       = 1 << 40 // bytes
	maxEngine       = 1 << 38 // bytes
)

// Open asks for the mini-batches of one rank. It is a trainer's first message. The groups exist in Go only: the message
// has their members side by side.
type Open struct {
	Version int `json:"version"`
	Source
	Plan
	Limits
	Share
	Token string `json:"token,omitempty"` // where to go on
	// Stamps are Opened.Stamps from when the token was kept. Without them only the token and the manifest are compared.
	Stamps map[string]api.Stamp `json:"stamps,omitempty"`
}

// Source names the rows and what is made of them.
type Source struct {
	Files       []string `json:"files"`                  // names of files, folders and patterns
	Include     []string `json:"include,omitempty"`      // patterns of the names of files that are taken; none: all
	Exclude     []string `json:"exclude,omitempty"`      // patterns of the names of files that are left out
	InputFormat string   `json:"input_format,omitempty"` // "" finds it by the files' contents
	Label       string   `json:"label,omitempty"`        // Text has it: "present" (default) or "absent".
	Malformed   string   `json:"malformed,omitempty"`    // Text knows "fail" (default), "drop" and "null".
	Sort        string   `json:"sort,omitempty"`         // Files are "given" (default), or sorted "natural" or by "name".
	Root        string   `json:"root,omitempty"`         // folder in which the data set begins; may be empty
	Pipeline    string   `json:"pipeline"`               // a YAML document, or the name of a built-in pipeline
	Split       string   `json:"split,omitempty"`        // form of pipeline.ParseValidationSplit; "" takes all rows
	// Vocabularies are the files of the pipeline's vocabularies, by name.
	Vocabularies map[string]string `json:"vocabularies,omitempty"`
	// Statistics are the files of the pipeline's statistics, by name.
	Statistics map[string]string `json:"statistics,omitempty"`
	// Modules are the files of the WebAssembly modules that the pipeline's operators name, by name.
	Modules map[string]string `json:"modules,omitempty"`
}

// Plan says which rows make which mini-batch, and in which order they come.
type Plan struct {
	Batch        int    `json:"batch,omitempty"` // 0 takes the pipeline's
	Boundary     string `json:"boundary,omitempty"`
	Tail         string `json:"tail,omitempty"`
	Shuffle      string `json:"shuffle,omitempty"`
	Seed         uint64 `json:"seed,omitempty"`
	SplitBatches int    `json:"split_batches,omitempty"`
	Window       int    `json:"window,omitempty"`
	Epochs       uint64 `json:"epochs,omitempty"` // 0 means 1
	Order        string `json:"order,omitempty"`
}

// Limits bounds the memory and the cores of the process.
type Limits struct {
	QueueBytes   int64 `json:"queue_bytes,omitempty"`   // bound of the buffers, all local ranks together
	EngineBytes  int64 `json:"engine_bytes,omitempty"`  // bound of the engine's memory; 0 means DefaultEngineBytes
	Threads      int   `json:"threads,omitempty"`       // engine threads; 0: the cores that the trainers leave
	TrainerCores int   `json:"trainer_cores,omitempty"` // cores left to the trainers; 0: one a local rank, -1: none
}

// Share names the rank's part of the mini-batches, and the other ranks of this machine.
type Share struct {
	Rank       int    `json:"rank"`                  // The rank is one of Ranks.
	Ranks      int    `json:"ranks,omitempty"`       // 0 means 1
	RankTail   string `json:"rank_tail,omitempty"`   // "drop" (default) or "keep"
	LocalRanks int    `json:"local_ranks,omitempty"` // Ranks of this machine share the process; 0 means 1.
	// Listen is the name of the abstract socket for the other local ranks: what they know, a hyphen, and what nobody knows
	// before the socket is open. Other users can therefore not take the name.
	Listen   string `json:"listen,omitempty"`
	Patience int    `json:"patience,omitempty"` // seconds to wait for the other local ranks
}

// validate checks that the values of an Open are within their bounds.
func (o *Open) validate() error {
	if o.Version != Version {
		return &VersionError{Theirs: o.Version}
	}
	for _, group := range []interface{ validate() error }{&o.Source, &o.Plan, &o.Limits, &o.Share} {
		if err := group.validate(); err != nil {
			return err
		}
	}
	return nil
}

// wrongOption returns the error of a value that is not within its bounds.
func wrongOption(format string, a ...any) error {
	return &OptionError{Message: fmt.Sprintf(format, a...)}
}

func (s *Source) validate() error {
	switch {
	case len(s.Files) == 0:
		return wrongOption("no files: name at least one")
	case len(s.Files) > maxFiles:
		return wrongOption("%d names of files, at most %d: use a folder or a pattern", len(s.Files), maxFiles)
	case len(s.Include) > maxPatterns, len(s.Exclude) > maxPatterns:
		return wrongOption("%d patterns of include, %d of exclude: at most %d each", len(s.Include), len(s.Exclude),
			maxPatterns)
	case len(s.Vocabularies) > maxVocabularies:
		return wrongOption("%d files of vocabularies, at most %d", len(s.Vocabularies), maxVocabularies)
	case len(s.Statistics) > maxStatistics:
		return wrongOption("%d files of statistics, at most %d", len(s.Statistics), maxStatistics)
	case len(s.Modules) > maxModules:
		return wrongOption("%d files of modules, at most %d", len(s.Modules), maxModules)
	}
	return nil
}

func (p *Plan) validate() error {
	switch {
	case p.Epochs > maxEpochs:
		return wrongOption("%d epochs, at most %d", p.Epochs, uint64(maxEpochs))
	case p.Batch < 0 || p.Batch > math.MaxInt32:
		return wrongOption("batch of %d rows", p.Batch)
	case p.SplitBatches < 0 || p.SplitBatches > math.MaxInt32:
		return wrongOption("split_batches of %d", p.SplitBatches)
	case p.Window < 0 || p.Window > math.MaxInt32:
		return wrongOption("window of %d", p.Window)
	}
	return nil
}

func (l *Limits) validate() error {
	switch {
	case l.QueueBytes < 0 || l.QueueBytes > maxBuffer:
		return wrongOption("queue_bytes of %d, want 0 to %d", l.QueueBytes, int64(maxBuffer))
	case l.EngineBytes < 0 || l.EngineBytes > maxEngine:
		return wrongOption("engine_bytes of %d, want 0 to %d", l.EngineBytes, int64(maxEngine))
	case l.Threads < 0 || l.Threads > maxThreads:
		return wrongOption("threads of %d, want 0 to %d", l.Threads, maxThreads)
	case l.TrainerCores < -1 || l.TrainerCores > math.MaxInt32:
		return wrongOption("trainer_cores of %d, want -1 or more", l.TrainerCores)
	}
	return nil
}

func (s *Share) validate() error {
	switch {
	case s.Ranks < 0 || s.Ranks > maxRanks || s.Rank < 0 || s.Rank >= max(s.Ranks, 1):
		return wrongOption("rank %d of %d: ranks count from 0, and there are at most %d", s.Rank, s.Ranks, maxRanks)
	case s.LocalRanks < 0 || s.LocalRanks > max(s.Ranks, 1):
		return wrongOption("%d local ranks of %d", s.LocalRanks, max(s.Ranks, 1))
	case s.RankTail != "" && s.RankTail != "drop" && s.RankTail != "keep":
		return wrongOption("rank_tail %.40q: want drop or keep", s.RankTail)
	case s.Patience < 0 || s.Patience > math.MaxInt32:
		return wrongOption("patience of %d seconds", s.Patience)
	case len(s.Listen) > 100:
		return wrongOption("a socket's name of %d bytes, at most 100", len(s.Listen))
	}
	return nil
}

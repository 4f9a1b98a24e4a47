package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/bench/rm"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/tensor"
)

// vocabularyWork is a workload of bench/rm whose ids are places in vocabularies, and what its peers have to know of it.
type vocabularyWork struct {
	Name    string
	Format  string // packed, text or parquet
	Modulus int64  // 0: none
	Indices bool   // ids are looked up; false: they are what the modulus leaves
}

// vocabularyWorks are the workloads that -models takes instead of rm1 to rm5.
var vocabularyWorks = []vocabularyWork{
	{"criteo-5k", "packed", 5000, true},
	{"criteo-512k", "packed", 524_288, true},
	{"criteo-1m", "packed", 1_000_000, true},
	{"criteo-zipf", "packed", 0, true},
	{"criteo-5k-tsv", "text", 5000, true},
	{"criteo-1m-tsv", "text", 1_000_000, true},
	{"d1-1", "parquet", 524_288, false},
	{"d1-2", "parquet", 8192, true},
	{"d1-3", "parquet", 524_288, true},
}

// vocabularyRows are the rows of a workload with vocabularies unless -rows says otherwise.
const vocabularyRows = 2_097_152

// vocabularyMemory is what ours may take for keys while it builds vocabularies. The peers take what they need.
const vocabularyMemory = 4 << 30

// vocabularyKinds are the peers of python/vocabularies.py.
var vocabularyKinds = []struct{ kind, name, what string }{
	{"pyarrow", "pyarrow", "pyarrow reads, NumPy takes modulus and logarithm, dictionary_encode makes the ids"},
	{"pandas", "pandas", "the same with pandas' factorize"},
	{"polars", "polars", "Polars reads and computes; unique in order, and a join, make the ids"},
	{"duckdb", "duckdb", "DuckDB makes the ids: the least row of each key, numbered, joined; the rest as for pyarrow"},
}

// findVocabularyWork returns a workload with vocabularies.
func findVocabularyWork(name string) (vocabularyWork, bool) {
	i := slices.IndexFunc(vocabularyWorks, func(w vocabularyWork) bool { return w.Name == name })
	if i < 0 {
		return vocabularyWork{}, false
	}
	return vocabularyWorks[i], true
}

// checkModels checks that models exist, and that all are of one kind. It reports whether they have vocabularies.
func checkModels(models []string) (vocabularies bool, err error) {
	for i, m := range models {
		_, ok := findVocabularyWork(m)
		if !ok {
			if _, err := findModel(m); err != nil {
				return false, err
			}
		}
		if i > 0 && ok != vocabularies {
			return false, fmt.Errorf("%s and %s are measured by different runs", models[0], m)
		}
		vocabularies = ok
	}
	return vocabularies, nil
}

// loops are ours: both loops over a workload.
type loops struct {
	work *rm.Loops
	data *dataset
}

// openLoops generates the data of a workload and opens it.
func (o options) openLoops(ctx context.Context, dir string, w vocabularyWork) (*loops, error) {
	rows := o.rows
	if rows == 0 {
		rows = vocabularyRows
	}
	l, err := rm.OpenLoops(ctx, rm.Options{
		Threads: o.threads, Rows: rows, Folder: dir, VocabularyMemory: vocabularyMemory,
	}, w.Name)
	if err != nil {
		return nil, err
	}
	d := &dataset{Model: workload.Model{Name: w.Name, Dense: 13, Sparse: 26}, Path: l.Path(), Rows: l.Rows(),
		Batch: workload.Batch, Vocabulary: &w, Threads: o.threads}
	return &loops{l, d}, nil
}

func (l *loops) gather(ctx context.Context) (*block, error) {
	var lock sync.Mutex // of blocks: each thread has a goroutine
	blocks := map[int64]*block{}
	err := l.work.Turn(ctx, func(_ int, first int64, mb *tensor.MiniBatch) error {
		b := newBlock(len(mb.Schema.Dense), len(mb.Schema.Keys))
		b.append(blockOf(mb))
		lock.Lock()
		defer lock.Unlock()
		blocks[first] = b
		return nil
	})
	all := newBlock(l.data.Model.Dense, l.data.Model.Sparse)
	for _, first := range slices.Sorted(maps.Keys(blocks)) {
		all.append(blocks[first])
	}
	return all, err
}

func (l *loops) measure(ctx context.Context, least time.Duration) (s sample, err error) {
	runtime.GC() // collects the garbage of earlier turns
	begin, cpu := time.Now(), cpuSeconds()
	for s.Rows == 0 || time.Since(begin) < least {
		if err := l.work.Turn(ctx, func(int, int64, *tensor.MiniBatch) error { return nil }); err != nil {
			return s, err
		}
		s.Rows += l.data.Rows
	}
	s.Wall, s.CPU = time.Since(begin).Seconds(), cpuSeconds()-cpu
	return s, nil
}

func (l *loops) close() error { return l.work.Close() }

// vocabularyPeers are the peers in Python.
func (o options) vocabularyPeers(r *report) (list []peer) {
	if o.python == "" {
		return nil
	}
	for _, k := range vocabularyKinds {
		list = append(list, peer{Name: k.name, What: k.what, Ulps: 4,
			start: func(ctx context.Context, d *dataset) (contender, error) {
				p, err := startPython(ctx, o.python, k.kind, d)
				if err == nil && !slices.Contains(r.Header.Versions, p.version) {
					r.Header.Versions = append(r.Header.Versions, p.version)
				}
				return p, err
			}})
	}
	return list
}

// vocabularyTable generates one workload, holds every peer to ours, and measures those that agree.
func (o options) vocabularyTable(ctx context.Context, dir, model string, r *report,
	say func(string)) (_ *table, err error) {
	w, _ := findVocabularyWork(model)
	say(model + ": generate")
	us, err := o.openLoops(ctx, dir, w)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(us.data.Path)
	if err != nil {
		return nil, errors.Join(err, us.close())
	}
	t := &table{Model: model, Layout: w.Format, Rows: us.data.Rows, FileBytes: int(info.Size())}
	t.Lines = []line{{Name: "millrace", What: "both loops; the vocabularies stay in memory, as those of the peers do",
		Output: "what peers are held to"}}
	return t, o.fillTable(ctx, t, us, us.data, o.vocabularyPeers(r), say)
}

// title is how a table begins.
func (t *table) title() string {
	return fmt.Sprintf("%s, %s: %s, %.0f MB", strings.ToUpper(t.Model), t.Layout, quantity.Of(t.Rows, "row"),
		float64(t.FileBytes)/1e6)
}

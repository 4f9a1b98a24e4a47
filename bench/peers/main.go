package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/bench/rm"
)

// options are the flags.
type options struct {
	models []string
	// vocabularies says that the models are those with vocabularies.
	vocabularies bool
	rounds       int
	least        time.Duration
	rows         int64
	coverage     float64
	criteo       string   // file of Criteo's rows
	peers        []string // nil: all
	python       string
	core         int // -2: tie to none
	threads      int
	out          string
	scratch      string
	engine       bool // measure the cpu engine alone, for python/speed.py
	args         []string
}

// command is how it was called, without where things lie on this machine.
func (o options) command() string {
	stand := map[string]string{"python": "PYTHON", "out": "DIR", "scratch": "DIR", "criteo": "FILE"}
	words := []string{"go run ."}
	next := ""
	for _, a := range o.args {
		name, _, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case next != "":
			a, next = next, ""
		case strings.HasPrefix(a, "-") && has && stand[name] != "":
			a = a[:strings.Index(a, "=")+1] + stand[name]
		case strings.HasPrefix(a, "-"):
			next = stand[name]
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

func parse(args []string) (options, error) {
	o := options{args: args}
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	models := f.String("models", "rm1,rm5",
		"workloads, rm1 to rm5, rm1-real; or of those with vocabularies: criteo-5k, criteo-512k, criteo-1m, criteo-zipf, "+
			"criteo-5k-tsv, criteo-1m-tsv, d1-1, d1-2, d1-3")
	f.IntVar(&o.rounds, "rounds", 5, "rounds, in each of which every contender is measured once")
	f.DurationVar(&o.least, "time", time.Second,
		"least time of a measuring; at least one turn over the file, unless that takes five times as long")
	f.Int64Var(&o.rows, "rows", 0, "rows of a file (default: about 100 MB)")
	f.Float64Var(&o.coverage, "coverage", 1, "share of rows that have a feature; 0: the model's own")
	f.StringVar(&o.criteo, "criteo", "", "file of Criteo's rows as text, which rm1-real repeats")
	peers := f.String("peers", "", "only these, by the beginnings of their names, comma-separated")
	f.StringVar(&o.python, "python", "",
		"interpreter with pyarrow, NumPy and polars, for the peers in Python (make bench-python)")
	f.IntVar(&o.core, "core", -1, "processor that everything is tied to; -1: the last one; -2: none")
	f.IntVar(&o.threads, "threads", 1,
		"threads of everybody, each of ours and of the Go peers with a file of its own; above 1 nobody is tied, and "+
			"none is in Python")
	f.StringVar(&o.out, "out", filepath.Join("..", "..", "capacity", "results"),
		"folder for peers.json and peers.md; empty: only print")
	f.StringVar(&o.scratch, "scratch", "", "folder for the generated files (default: memory, where /dev/shm is there)")
	f.BoolVar(&o.engine, "engine", false,
		"only measure the cpu engine alone, for make bench-speed: a job in JSON on standard input, a sample on standard "+
			"output")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.models = strings.Split(*models, ",")
	if *peers != "" {
		o.peers = strings.Split(*peers, ",")
	}
	if o.rounds < 1 || o.least <= 0 || o.rows < 0 || o.coverage < 0 || o.coverage > 1 || f.NArg() > 0 {
		return o, errors.New("-rounds from 1, -time above 0, -rows from 0, -coverage 0 to 1, no arguments")
	}
	var err error
	if o.vocabularies, err = checkModels(o.models); err != nil {
		return o, err
	}
	if slices.Contains(o.models, rm.RealRM1) != (o.criteo != "") {
		return o, fmt.Errorf("%s and -criteo FILE go together", rm.RealRM1)
	}
	if o.threads < 1 || o.threads > 64 || o.threads > 1 && (o.python != "" && !o.vocabularies || o.core >= 0) {
		return o, errors.New("-threads 1 to 64; above 1 neither -python nor -core")
	}
	if o.scratch == "" {
		o.scratch = os.TempDir()
		if s, err := os.Stat("/dev/shm"); err == nil && s.IsDir() {
			o.scratch = "/dev/shm"
		}
	}
	return o, nil
}

// wants reports whether a peer was asked for.
func (o options) wants(name string) bool {
	return o.peers == nil || slices.ContainsFunc(o.peers, func(p string) bool { return strings.HasPrefix(name, p) })
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	}
	if o.engine {
		runtime.GOMAXPROCS(1)
		err = runEngine(ctx, os.Stdin, os.Stdout)
	} else {
		err = compareAll(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// compareAll makes all tables, keeps them and prints them.
func compareAll(ctx context.Context, o options) error {
	r, err := run(ctx, o, func(s string) { fmt.Fprintln(os.Stderr, s) })
	if err == nil && o.out != "" {
		err = r.save(o.out)
	}
	if err == nil {
		fmt.Print(r.markdown())
	}
	return err
}

// run makes all tables.
func run(ctx context.Context, o options, say func(string)) (*report, error) {
	dir, err := os.MkdirTemp(o.scratch, "millrace-peers-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	core := -1
	if o.threads > 1 {
		runtime.GOMAXPROCS(o.threads)
	} else if o.core > -2 {
		if core, err = tie(o.core); err != nil {
			return nil, err
		}
		runtime.GOMAXPROCS(1)
	}
	r := &report{Header: newHeader(ctx, o, core)}
	for _, model := range o.models {
		if o.vocabularies {
			t, err := o.vocabularyTable(ctx, dir, model, r, say)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", model, err)
			}
			r.Tables = append(r.Tables, *t)
			continue
		}
		for _, l := range layouts {
			t, err := o.table(ctx, dir, model, l, r, say)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", model, l, err)
			}
			r.Tables = append(r.Tables, *t)
		}
	}
	return r, nil
}

// table generates one file, holds every peer to ours, and measures those that agree.
func (o options) table(ctx context.Context, dir, model string, l layout, r *report,
	say func(string)) (_ *table, err error) {
	say(fmt.Sprintf("%s, %s: generate", model, l))
	d, err := generate(ctx, dir, model, l, dataOptions{Rows: o.rows, Coverage: o.coverage, Threads: o.threads,
		Criteo: o.criteo})
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Dir(d.Path))
	us, err := startOurs(ctx, d)
	if err != nil {
		return nil, err
	}
	t := &table{Model: model, Layout: l.String(), Rows: d.Rows, FileBytes: d.fileBytes()}
	t.Lines = []line{{Name: "millrace", What: "ours: the cpu engine", Output: "what peers are held to"}}
	return t, o.fillTable(ctx, t, us, d, o.allPeers(r), say)
}

// fillTable holds peers to ours and measures those that agree. It closes ours.
func (o options) fillTable(ctx context.Context, t *table, us contender, d *dataset, peers []peer,
	say func(string)) (err error) {
	contenders := []contender{us} // ours first
	defer func() {
		for _, c := range contenders {
			err = errors.Join(err, c.close())
		}
	}()
	name := t.Model + ", " + t.Layout
	want, err := contenders[0].gather(ctx)
	if err != nil {
		return err
	}
	places := []int{0} // of contenders among the lines
	for _, p := range peers {
		if !o.wants(p.Name) {
			continue
		}
		say(fmt.Sprintf("%s: compare %s", name, p.Name))
		c, output, err := enter(ctx, p, d, want)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			say(fmt.Sprintf("%s: %s is not timed: %v", name, p.Name, err))
			output = "not timed: " + reason(err)
		} else {
			places = append(places, len(t.Lines))
			contenders = append(contenders, c)
		}
		t.Lines = append(t.Lines, line{Name: p.Name, What: p.What, Output: output})
	}
	want = nil // the garbage is not to be scanned while others are timed
	say(fmt.Sprintf("%s: %d rounds of %d", name, o.rounds, len(contenders)))
	samples, err := alternate(ctx, contenders, o.rounds, o.least)
	if err != nil {
		return err
	}
	for i, place := range places {
		t.Lines[place].fill(samples[0], samples[i])
	}
	return nil
}

// reason is an error without where things lie on this machine.
func reason(err error) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Op + ": " + path.Err.Error()
	}
	return err.Error()
}

// allPeers lists linked peers and, if there is an interpreter, those in Python.
func (o options) allPeers(r *report) []peer {
	list := goPeers()
	if o.python == "" {
		return list
	}
	for _, k := range pythonKinds {
		list = append(list, peer{Name: k.name, What: k.what, Ulps: k.ulps,
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

// enter starts a peer and compares a turn of it with ours.
func enter(ctx context.Context, p peer, d *dataset, want *block) (contender, string, error) {
	c, err := p.start(ctx, d)
	if err != nil {
		return nil, "", err
	}
	expect, err := p.expected(ctx, d, want)
	if err != nil {
		return nil, "", errors.Join(err, c.close())
	}
	got, err := c.gather(ctx)
	if err != nil {
		return nil, "", errors.Join(err, c.close())
	}
	unequal, farthest, err := compare(expect, got, p.Ulps)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("output differs: %w", err), c.close())
	}
	output := "equal"
	if unequal > 0 {
		output = fmt.Sprintf("equal but %d of %d logarithms, %d ulp at most", unequal,
			int64(want.rows)*int64(len(want.dense)), farthest)
	}
	if p.Hash != nil {
		output += "; ids by its own hash, as recomputed"
	}
	return c, output, nil
}

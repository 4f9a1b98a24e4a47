package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

//go:embed python/peers.py
var script []byte

//go:embed python/vocabularies.py
var vocabularyScript []byte

// pythonKinds are the peers of python/peers.py.
var pythonKinds = []struct {
	kind, name, what string
	ulps             int64
}{
	{
		"pyarrow", "pyarrow + NumPy",
		"pyarrow decodes, NumPy computes a column at a time (its float32 log: up to 4 ulp)", 4,
	},
	{"polars", "polars", "Polars: dense features in one query, SigridHash spelt out over series", 4},
}

// python is a peer in a Python process, which inherits the core that this one is tied to.
type python struct {
	data    *dataset
	dir     string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	version string
}

// startPython starts a peer with the interpreter of an environment that has its packages.
func startPython(ctx context.Context, interpreter, kind string, d *dataset) (*python, error) {
	dir, err := os.MkdirTemp("", "millrace-peers-")
	if err != nil {
		return nil, err
	}
	p := &python{data: d, dir: dir}
	if err := p.start(ctx, interpreter, kind); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", kind, err), p.close())
	}
	return p, nil
}

func (p *python) start(ctx context.Context, interpreter, kind string) error {
	bits := make([]uint32, len(p.data.Borders))
	for i, b := range p.data.Borders {
		bits[i] = math.Float32bits(b)
	}
	m, program, threads := p.data.Model, script, "1"
	options := map[string]any{
		"path": p.data.Path, "batch": p.data.Batch, "lists": m.Lists, "max": p.data.Max, "borders": bits,
		"generated": m.Generated, "dense": m.Dense, "sparse": m.Sparse,
	}
	if v := p.data.Vocabulary; v != nil {
		program, threads = vocabularyScript, strconv.Itoa(p.data.Threads)
		options["format"], options["modulus"], options["indices"] = v.Format, v.Modulus, v.Indices
		options["threads"] = p.data.Threads
	}
	config, err := json.Marshal(options)
	if err != nil {
		return err
	}
	for name, b := range map[string][]byte{"peers.py": program, "config.json": config} {
		if err := os.WriteFile(filepath.Join(p.dir, name), b, 0o666); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, interpreter, filepath.Join(p.dir, "peers.py"), kind,
		filepath.Join(p.dir, "config.json"))
	cmd.Env = append(os.Environ(), "POLARS_MAX_THREADS="+threads, "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.out = cmd, bufio.NewReader(out)
	var hello struct{ Version string }
	err = p.read(&hello)
	p.version = hello.Version
	return err
}

// ask sends a line and reads the answer.
func (p *python) ask(into any, words ...any) error {
	b, err := json.Marshal(words)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		return err
	}
	return p.read(into)
}

func (p *python) read(into any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	return json.Unmarshal(line, into)
}

func (p *python) measure(_ context.Context, least time.Duration) (sample, error) {
	var a struct {
		Rows      int64
		Wall, CPU float64
	}
	err := p.ask(&a, "measure", least.Seconds())
	return sample{Rows: a.Rows, Wall: a.Wall, CPU: a.CPU}, err
}

func (p *python) gather(context.Context) (*block, error) {
	var a struct {
		Rows   int
		Counts []int
	}
	if err := p.ask(&a, "gather", p.dir); err != nil {
		return nil, err
	}
	b := newBlock(p.data.Model.Dense, p.data.keys())
	b.rows = a.Rows
	if len(a.Counts) != len(b.values) {
		return nil, fmt.Errorf("%d keys, want %d", len(a.Counts), len(b.values))
	}
	var err error
	if b.label, err = numbers[float32](p.dir, "label", a.Rows); err != nil {
		return nil, err
	}
	dense, err := numbers[float32](p.dir, "dense", a.Rows*len(b.dense))
	if err != nil {
		return nil, err
	}
	for i := range b.dense {
		b.dense[i] = dense[i*a.Rows : (i+1)*a.Rows]
	}
	lengths, err := numbers[int32](p.dir, "lengths", a.Rows*len(b.lengths))
	if err != nil {
		return nil, err
	}
	sum := 0
	for i, n := range a.Counts {
		b.lengths[i] = lengths[i*a.Rows : (i+1)*a.Rows]
		sum += n
	}
	values, err := numbers[int32](p.dir, "values", sum)
	if err != nil {
		return nil, err
	}
	for i, n := range a.Counts {
		b.values[i], values = values[:n], values[n:]
	}
	return b, nil
}

// numbers reads a file of exactly n little-endian numbers.
func numbers[T int32 | float32](dir, name string, n int) ([]T, error) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if n < 0 || len(raw) != 4*n {
		return nil, fmt.Errorf("%s: %d bytes, want %d numbers of 4", name, len(raw), n)
	}
	v := make([]T, n)
	_, err = binary.Decode(raw, binary.LittleEndian, v)
	return v, err
}

// close ends the process by closing its input.
func (p *python) close() error {
	var errs []error
	if p.cmd != nil {
		errs = append(errs, p.in.Close(), p.cmd.Wait())
	}
	return errors.Join(append(errs, os.RemoveAll(p.dir))...)
}

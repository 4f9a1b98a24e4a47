package main

import (
	"context"
	"errors"
)

// runner preprocesses one file again and again.
type runner interface {
	// turn preprocesses the whole file and calls take for every block of rows: their columns lie in memory then. get
	// views them, for comparisons, until take returns; an error of take ends the turn.
	turn(ctx context.Context, take func(rows int, get func() (*block, error)) error) error
	close() error
}

// peer is a row of the table.
type peer struct {
	Name string
	What string // it is, in a sentence
	Ulps int64  // allowed distance of dense features
	// Hash is the hash of ids if it is not SigridHash. The expected values are computed with it.
	Hash func(uint64) uint64
	// Ungenerated peers leave out the generated features.
	Ungenerated bool
	// start readies it for a file.
	start func(ctx context.Context, d *dataset) (contender, error)
}

// link makes the start function of a peer from the function that opens a runner in this process. Each of a dataset's
// parts gets a runner.
func link(open func(ctx context.Context, d *dataset) (runner,
	error)) func(context.Context, *dataset) (contender, error) {
	return func(ctx context.Context, d *dataset) (contender, error) {
		if d.Parts != nil {
			return openThreads(ctx, d, open)
		}
		r, err := open(ctx, d)
		if err != nil {
			return nil, err
		}
		return linked{r, d}, nil
	}
}

// goPeers are the peers that this program links.
func goPeers() []peer {
	duck := func(sigridHash bool) func(context.Context, *dataset) (contender, error) {
		return link(func(_ context.Context, d *dataset) (runner, error) { return openDuck(d, sigridHash) })
	}
	arrow := func(ops func(*dataset) operators) func(context.Context, *dataset) (contender, error) {
		return link(func(_ context.Context, d *dataset) (runner, error) {
			open, err := openArrow(d)
			return &goPeer{data: d, open: open, ops: ops(d)}, err
		})
	}
	return []peer{
		{Name: "duckdb", Ulps: 1, Hash: duckHash, start: duck(false),
			What: "DuckDB, one statement, its own hash(id) % max instead of SigridHash"},
		{Name: "duckdb, no buckets", Ulps: 1, Hash: duckHash, Ungenerated: true,
			start: func(ctx context.Context, d *dataset) (contender, error) {
				less := d.Model
				less.Generated = 0
				return duck(false)(ctx, d.withModel(less))
			}, What: "the same without the generated features, which ours makes all the same"},
		{Name: "duckdb, SigridHash", Ulps: 1, start: duck(true),
			What: "DuckDB, one statement, SigridHash spelt out in SQL: 128-bit arithmetic and masks, for its 64-bit " +
				"arithmetic does not wrap"},
		{Name: "arrow-go", Ulps: 1, start: arrow(func(d *dataset) operators {
			return &plain{borders: d.Borders, max: d.Max}
		}),
			What: "arrow-go's record reader, operators as loops in Go"},
		{Name: "parquet-go", Ulps: 1, start: link(openPlain(nil)),
			What: "parquet-go's pages, as typed slices, operators as loops in Go"},
		{Name: "TorchArrow's loops", Ulps: 1, start: arrow(func(d *dataset) operators {
			return &torchArrow{borders: d.Borders, max: d.Max}
		}),
			What: "TorchArrow's " +
				"per-row scalar loops rewritten in Go (all borders checked a row, a 128-bit division a row) " +
				"behind arrow-go's record reader; not TorchArrow itself"},
	}
}

// openPlain is parquet-go with operators in Go, and with another hash the expectation for peers that have one.
func openPlain(hash func(uint64) uint64) func(context.Context, *dataset) (runner, error) {
	return func(_ context.Context, d *dataset) (runner, error) {
		open, err := openParquet(d)
		return &goPeer{data: d, open: open, ops: &plain{borders: d.Borders, max: d.Max, hash: hash}}, err
	}
}

// gather runs one turn and keeps all of it.
func gather(ctx context.Context, r runner, d *dataset) (*block, error) {
	all := newBlock(d.Model.Dense, d.keys())
	err := r.turn(ctx, func(_ int, get func() (*block, error)) error {
		b, err := get()
		if err == nil {
			all.append(b)
		}
		return err
	})
	return all, err
}

// expected returns the block that a peer must make: ours, without generated features if the peer leaves them out. If
// the peer has another hash, the ids are those that parquet-go's columns and that hash give.
func (p *peer) expected(ctx context.Context, d *dataset, want *block) (*block, error) {
	e := *want
	if p.Hash != nil {
		c, err := link(openPlain(p.Hash))(ctx, d)
		if err != nil {
			return nil, err
		}
		all, err := c.gather(ctx)
		if err := errors.Join(err, c.close()); err != nil {
			return nil, err
		}
		e.values = all.values
	}
	if p.Ungenerated {
		e.values, e.lengths = e.values[:d.Model.Sparse], e.lengths[:d.Model.Sparse]
	}
	return &e, nil
}

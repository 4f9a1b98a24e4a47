//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/duckdb/duckdb-go/mapping"
)

// duck is DuckDB with one thread: the pipeline as one statement, prepared once, its chunks fetched as vectors and held
// until the next. It reads the file itself, from the file system's cache.
type duck struct {
	data      *dataset
	db        mapping.Database
	conn      mapping.Connection
	statement mapping.PreparedStatement
	wall, cpu float64 // spent on planning
}

// planned returns the time of planning: DuckDB plans a prepared statement again each time, 0.2 s for the 589 columns
// of RM5.
func (k *duck) planned() (wall, cpu float64) { return k.wall, k.cpu }

// duckVersion is that of the library.
func duckVersion() string { return "DuckDB " + mapping.LibraryVersion() }

func openDuck(d *dataset, sigridHash bool) (*duck, error) {
	k := &duck{data: d}
	if mapping.Open("", &k.db) == mapping.StateError {
		return nil, errors.New("duckdb: open")
	}
	if mapping.Connect(k.db, &k.conn) == mapping.StateError {
		return nil, errors.Join(errors.New("duckdb: connect"), k.close())
	}
	for _, q := range []string{"PRAGMA threads=1", "PRAGMA disable_progress_bar", "SET parquet_metadata_cache=true"} {
		var r mapping.Result
		if mapping.Query(k.conn, q, &r) == mapping.StateError {
			return nil, errors.Join(fmt.Errorf("duckdb: %s: %s", q, mapping.ResultError(&r)), k.close())
		}
		mapping.DestroyResult(&r)
	}
	if mapping.Prepare(k.conn, duckQuery(d, sigridHash), &k.statement) == mapping.StateError {
		return nil, errors.Join(fmt.Errorf("duckdb: prepare: %s", mapping.PrepareError(k.statement)), k.close())
	}
	return k, nil
}

func (k *duck) close() error {
	mapping.DestroyPrepare(&k.statement)
	mapping.Disconnect(&k.conn)
	mapping.Close(&k.db)
	return nil
}

func (k *duck) turn(ctx context.Context, take func(rows int, get func() (*block, error)) error) error {
	var pending mapping.PendingResult
	begin, cpu := time.Now(), cpuSeconds()
	ok := pendingStreaming(k.statement, &pending)
	k.wall += time.Since(begin).Seconds()
	k.cpu += cpuSeconds() - cpu
	if !ok {
		return fmt.Errorf("duckdb: %s", mapping.PendingError(pending))
	}
	defer mapping.DestroyPending(&pending)
	var r mapping.Result
	if mapping.ExecutePending(pending, &r) == mapping.StateError {
		return fmt.Errorf("duckdb: %s", mapping.ResultError(&r))
	}
	defer mapping.DestroyResult(&r)
	for ctx.Err() == nil {
		chunk := mapping.FetchChunk(r)
		if chunk.Ptr == nil {
			if e := mapping.ResultError(&r); e != "" {
				return fmt.Errorf("duckdb: %s", e)
			}
			return nil
		}
		rows := int(mapping.DataChunkGetSize(chunk))
		err := take(rows, func() (*block, error) { return k.block(chunk, rows) })
		mapping.DestroyDataChunk(&chunk)
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// block views a chunk's vectors.
func (k *duck) block(chunk mapping.DataChunk, rows int) (*block, error) {
	m := k.data.Model
	b := newBlock(m.Dense, k.data.keys())
	b.rows = rows
	column := 0
	next := func() mapping.Vector {
		column++
		return mapping.DataChunkGetVector(chunk, mapping.IdxT(column-1))
	}
	b.label = vector[float32](next(), rows)
	for i := range b.dense {
		b.dense[i] = vector[float32](next(), rows)
	}
	for i := range b.values {
		v := next()
		if !m.Lists || i >= m.Sparse {
			b.values[i] = vector[int32](v, rows)
			continue
		}
		// A list is (offset, length) into the child, in no promised order.
		entries := vector[struct{ Offset, Length uint64 }](v, rows)
		child := vector[int32](mapping.ListVectorGetChild(v), int(mapping.ListVectorGetSize(v)))
		validity := mapping.VectorGetValidity(v)
		b.lengths[i] = make([]int32, rows)
		for row, e := range entries {
			if validity != nil && unsafe.Slice((*uint64)(validity), (rows+63)/64)[row/64]>>(row%64)&1 == 0 {
				continue
			}
			if e.Offset+e.Length > uint64(len(child)) {
				return nil, fmt.Errorf("duckdb: column %d, row %d: list [%d, +%d) of %d ids", column-1, row, e.Offset,
					e.Length, len(child))
			}
			b.lengths[i][row] = int32(e.Length)
			b.values[i] = append(b.values[i], child[e.Offset:e.Offset+e.Length]...)
		}
	}
	return b, nil
}

func vector[T any](v mapping.Vector, n int) []T {
	return unsafe.Slice((*T)(mapping.VectorGetData(v)), n)
}

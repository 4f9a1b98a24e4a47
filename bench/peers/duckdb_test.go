//go:build cgo

package main

import (
	"database/sql"
	"math"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDuckHashes holds DuckDB's hash and SigridHash in SQL to Go's, at the edges.
func TestDuckHashes(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	require.NoError(t, err)
	defer db.Close()
	for _, max := range []int64{2, 500_000, 1<<31 - 1} {
		for _, id := range []int64{0, 1, 2, 41, 500_000, 1<<31 - 1, 1 << 40, math.MaxInt64} {
			var own, sigridHash int32
			require.NoError(t, db.QueryRow("SELECT "+ownHash.scalar("id", max)+", "+sigridSQL.scalar("id", max)+
				" FROM (SELECT ?::BIGINT AS id)", id).Scan(&own, &sigridHash))
			assert.Equal(t, (&plain{max: max, hash: duckHash}).id(id), own, "own, id %d, max %d", id, max)
			assert.Equal(t, (&plain{max: max}).id(id), sigridHash, "SigridHash, id %d, max %d", id, max)
		}
	}
}

// TestDuckBuckets tries every border, its neighbours, and what lies outside.
func TestDuckBuckets(t *testing.T) {
	for _, model := range []string{"rm1", "rm5"} {
		d := &dataset{}
		d.Model.Name = model
		require.NoError(t, d.learn(loweredProgram(t, model)))
		values := []float32{
			0, -1, float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, math.SmallestNonzeroFloat32,
		}
		for _, b := range d.Borders {
			values = append(values, math.Nextafter32(b, 0), b, math.Nextafter32(b, math.MaxFloat32))
		}
		db, err := sql.Open("duckdb", "")
		require.NoError(t, err)
		defer db.Close()
		_, err = db.Exec("CREATE TABLE t (i INTEGER, v FLOAT)")
		require.NoError(t, err)
		for first := 0; first < len(values); first += 1000 {
			part := values[first:min(first+1000, len(values))]
			args := make([]any, 0, 2*len(part))
			for i, v := range part {
				args = append(args, first+i, v)
			}
			_, err = db.Exec("INSERT INTO t VALUES "+strings.Repeat("(?, ?),", len(part)-1)+"(?, ?)", args...)
			require.NoError(t, err)
		}
		rows, err := db.Query("SELECT " + bucketSQL("v", d) + " FROM t ORDER BY i")
		require.NoError(t, err)
		i := 0
		for ; rows.Next(); i++ {
			var got int64
			require.NoError(t, rows.Scan(&got))
			require.Equal(t, int64(lowerBound(d.Borders, values[i])), got, "%s: %v", model, values[i])
		}
		require.NoError(t, rows.Err())
		require.Equal(t, len(values), i)
		var null int64
		require.NoError(t, db.QueryRow("SELECT "+bucketSQL("v", d)+" FROM (SELECT NULL::FLOAT AS v)").Scan(&null))
		assert.Zero(t, null)
	}
}

func TestDuckSaysWhatIsWrong(t *testing.T) {
	d := &dataset{Path: "no/such/file'.parquet", Max: 10, Borders: []float32{1, 2}, From: 1, To: 2}
	_, err := openDuck(d, false)
	require.ErrorContains(t, err, "prepare")
}

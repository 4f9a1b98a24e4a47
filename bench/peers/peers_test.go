package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// smallData has nulls, empty lists, several pages and row groups.
func smallData(t *testing.T, model string, l layout, threads int) (*dataset, *block) {
	t.Helper()
	rows := int64(9000) // more than a mini-batch
	if model != "rm1" {
		rows = 300
	}
	d, err := generate(t.Context(), t.TempDir(), model, l,
		dataOptions{Rows: rows, Pages: 2000, Groups: int(rows)*2/3 + 1, Threads: threads})
	require.NoError(t, err)
	us, err := startOurs(t.Context(), d)
	require.NoError(t, err)
	want, err := us.gather(t.Context())
	require.NoError(t, err)
	require.NoError(t, us.close())
	require.Equal(t, int(rows), want.rows)
	return d, want
}

// TestPeersAgree holds every peer to ours, twice in a row, with one thread and with two.
func TestPeersAgree(t *testing.T) {
	for _, model := range []string{"rm1", "rm2"} {
		for _, c := range []struct {
			layout  layout
			threads int
		}{{layouts[0], 1}, {layouts[1], 1}, {layouts[1], 2}} {
			t.Run(fmt.Sprintf("%s %s %d", model, c.layout, c.threads), func(t *testing.T) {
				d, want := smallData(t, model, c.layout, c.threads)
				for _, p := range everyPeer() {
					t.Run(p.Name, func(t *testing.T) {
						c, output, err := enter(t.Context(), p, d, want)
						require.NoError(t, err)
						assert.Contains(t, output, "equal")
						s, err := c.measure(t.Context(), 10*time.Millisecond)
						require.NoError(t, err)
						assert.Positive(t, s.Rows)
						assert.Positive(t, s.Wall)
						// A turn that was cut short, or many, leave the next one whole.
						expect, err := p.expected(t.Context(), d, want)
						require.NoError(t, err)
						again, err := c.gather(t.Context())
						require.NoError(t, err)
						_, _, err = compare(expect, again, p.Ulps)
						require.NoError(t, err)
						require.NoError(t, c.close())
					})
				}
			})
		}
	}
}

// TestThreadsTakeTheSameRows checks that the files of the threads together hold the rows of the single file, in order.
func TestThreadsTakeTheSameRows(t *testing.T) {
	one, want := smallData(t, "rm1", layouts[0], 1)
	three, got := smallData(t, "rm1", layouts[0], 3)
	require.Len(t, three.files(), 3)
	require.Len(t, one.files(), 1)
	_, _, err := compare(want, got, 0)
	require.NoError(t, err)
}

// writeText writes Criteo's text with nulls, negative numbers and ids of 32 bits.
func writeText(t *testing.T, rows int) (path string) {
	t.Helper()
	var b strings.Builder
	for row := range rows {
		fmt.Fprint(&b, row%2)
		for i := range 13 {
			if b.WriteByte('\t'); (row+i)%4 > 0 {
				fmt.Fprint(&b, (row*i-3)%70_000)
			}
		}
		for i := range 26 {
			if b.WriteByte('\t'); (row+i)%13 > 0 {
				fmt.Fprintf(&b, "%08x", uint32(row*row+i)*0x9e3779b1)
			}
		}
		b.WriteByte('\n')
	}
	path = filepath.Join(t.TempDir(), "rows.tsv")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	return path
}

// TestRealRows holds every peer to ours over rows of a file of Criteo's text, repeated.
func TestRealRows(t *testing.T) {
	file := writeText(t, 3000)
	for _, threads := range []int{1, 2} {
		d, err := generate(t.Context(), t.TempDir(), "rm1-real", layouts[threads-1],
			dataOptions{Rows: 7001, Pages: 2000, Groups: 4000, Threads: threads, Criteo: file})
		require.NoError(t, err)
		assert.EqualValues(t, map[int]int{1: 7001, 2: 7000}[threads], d.Rows)
		require.Len(t, d.files(), threads)
		us, err := startOurs(t.Context(), d)
		require.NoError(t, err)
		want, err := us.gather(t.Context())
		require.NoError(t, err)
		require.NoError(t, us.close())
		require.EqualValues(t, d.Rows, want.rows)
		for _, p := range everyPeer() {
			c, output, err := enter(t.Context(), p, d, want)
			require.NoError(t, err, p.Name)
			assert.Contains(t, output, "equal")
			require.NoError(t, c.close())
		}
	}
	for _, args := range [][]string{{"-models", "rm1-real"}, {"-models", "rm1", "-criteo", file}} {
		_, err := parse(args)
		require.ErrorContains(t, err, "go together")
	}
}

// everyPeer adds those in Python if MILLRACE_PEERS_PYTHON names an interpreter that has them, and leaves DuckDB out
// without cgo.
func everyPeer() []peer {
	list := options{python: os.Getenv("MILLRACE_PEERS_PYTHON")}.allPeers(&report{})
	if duckVersion() == "" {
		list = slices.DeleteFunc(list, func(p peer) bool { return strings.HasPrefix(p.Name, "duckdb") })
	}
	return list
}

// TestPeersThatDiffer proves that the comparison sees what it should: another hash, other borders, a slip in a list.
func TestPeersThatDiffer(t *testing.T) {
	d, want := smallData(t, "rm2", layouts[0], 1)
	refused := func(name string, change func(d *dataset, p *peer)) {
		t.Run(name, func(t *testing.T) {
			other := *d
			p := peer{Name: name, Ulps: 1, start: link(openPlain(nil))}
			change(&other, &p)
			_, _, err := enter(t.Context(), p, &other, want)
			require.ErrorContains(t, err, "output differs")
		})
	}
	refused("hash", func(_ *dataset, p *peer) { p.start = link(openPlain(duckHash)) })
	refused("hash expected", func(_ *dataset, p *peer) { p.Hash = duckHash })
	refused("max", func(d *dataset, _ *peer) { d.Max-- })
	refused("borders", func(d *dataset, _ *peer) { d.Borders = d.Borders[1:] })
	refused("features left out", func(_ *dataset, p *peer) { p.Ungenerated = true })
}

package main

import (
	"fmt"
	"os"
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

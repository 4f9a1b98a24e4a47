package results

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

// speedTable is what README says of speed: rows a second of this project's cpu engine and of its peers, from the file
// that bench/peers wrote.
func speedTable(t *testing.T) string {
	r, err := Peers()
	require.NoError(t, err)
	peers := []string{"duckdb", "arrow-go", "parquet-go", "pyarrow + NumPy", "polars"}
	var b strings.Builder
	fmt.Fprintf(&b,
		"Rows a second on one core. Millrace makes train-ready tensors; its peers are asked for columns only. "+
			"`make bench-peers`\n"+
			"runs the comparison; this is %s.\n\n", r.Source())
	b.WriteString("| | Millrace | DuckDB | arrow-go | parquet-go | pyarrow + NumPy | Polars |\n")
	b.WriteString("|---|" + strings.Repeat("---|", len(peers)+1) + "\n")
	for _, table := range r.Tables {
		ours, ok := r.Rate(table.Model, table.Layout, "millrace")
		require.True(t, ok)
		fmt.Fprintf(&b, "| %s, %s | %s", strings.ToUpper(table.Model), table.Layout, rate(ours))
		for _, p := range peers {
			theirs, ok := r.Rate(table.Model, table.Layout, p)
			require.True(t, ok, p)
			b.WriteString(" | " + rate(theirs))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// rate writes rows a second with three digits.
func rate(v float64) string {
	for _, unit := range []string{"", " k", " M"} {
		if v < 999.5 || unit == " M" {
			return fmt.Sprintf("%.3g%s", v, unit)
		}
		v /= 1000
	}
	return ""
}

// TestReadmeHasTheMeasuredFigures compares README's table with the measured figures; MILLRACE_UPDATE=1 writes it.
func TestReadmeHasTheMeasuredFigures(t *testing.T) {
	const readme = "../../README.md"
	const head, tail = "<!-- speed: written by MILLRACE_UPDATE=1 go test ./bench/results -->\n", "<!-- end of speed -->\n"
	b, err := os.ReadFile(readme)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(b), head)
	require.True(t, found, "README.md has no place for the table")
	got, after, found := strings.Cut(rest, tail)
	require.True(t, found)
	want := speedTable(t)
	if goldenfile.Updating() {
		require.NoError(t, os.WriteFile(readme, []byte(before+head+want+tail+after), 0o644))
		return
	}
	assert.Equal(t, want, got, "run MILLRACE_UPDATE=1 go test ./bench/results")
}

func TestRate(t *testing.T) {
	for v, want := range map[float64]string{17969012: "18 M", 604321: "604 k", 12: "12", 999600: "1 M",
		1.2e9: "1.2e+03 M"} {
		assert.Equal(t, want, rate(v))
	}
}

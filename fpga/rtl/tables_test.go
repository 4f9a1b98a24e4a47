package rtl

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
)

const document = "../../docs/rtl.md"

// TestDocument checks that the tables of docs/rtl.md are what the descriptions and the kept synthesis make.
func TestDocument(t *testing.T) {
	units, err := Units()
	require.NoError(t, err)
	var table, transfers, resources strings.Builder
	table.WriteString("| unit | does | takes | interval | latency |\n|---|---|---|---|---|\n")
	for _, unit := range units {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %d | %d |\n", unit.Name, unit.About, unit.Takes, unit.InitiationInterval,
			unit.Latency)
	}
	fieldList := func(fields []Field) string {
		var parts []string
		for _, f := range fields {
			parts = append(parts, fmt.Sprintf("%s %d", f.Name, f.Bits))
		}
		return strings.Join(parts, ", ")
	}
	transfers.WriteString("| unit | bits of its input | bits of its output |\n|---|---|---|\n")
	for _, unit := range units {
		fmt.Fprintf(&transfers, "| `%s` | %s | %s |\n", unit.Name, fieldList(unit.Input), fieldList(unit.Output))
	}
	kept := keptSynthesis(t)
	tool, _, _ := strings.Cut(kept.Tool, " (")
	fmt.Fprintf(&resources, "| %s | LUT | LUT as shift register | LUT as memory | flip-flops | CARRY8 | RAMB18 "+
		"| URAM | DSP |\n|---|---|---|---|---|---|---|---|---|\n", tool)
	for _, unit := range kept.Units {
		fmt.Fprintf(&resources, "| `%s` | %d | %d | %d | %d | %d | %d | %d | %d |\n", unit.Unit, unit.LUT, unit.SRL,
			unit.LUTRAM, unit.FF, unit.CARRY8, unit.BRAM18, unit.URAM, unit.DSP)
	}
	var paths strings.Builder
	fmt.Fprintf(&paths, "| unit | ns | fits %d MHz | LUT and MUXF | CARRY4 | DSP | begins at | ends at |\n"+
		"|---|---|---|---|---|---|---|---|\n", ScreenedClockKHz/1000)
	for _, unit := range kept.Units {
		p, fits := unit.Path, "yes"
		if limit := p.LimitKHz(); limit < ScreenedClockKHz {
			fits = fmt.Sprintf("no: %d MHz", limit/1000)
		}
		fmt.Fprintf(&paths, "| `%s` | %.3f | %s | %d | %d | %d | %s | %s |\n", unit.Unit, float64(p.Picoseconds)/1e3, fits,
			p.LUTs, p.Carries, p.DSPs, p.BeginKind, p.EndKind)
	}
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	made := string(text)
	for name, content := range map[string]string{"units": table.String(), "transfers": transfers.String(),
		"resources": resources.String(), "paths": paths.String()} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
		before, rest, found := strings.Cut(made, begin)
		require.True(t, found, "%s has no %q", document, begin)
		_, after, found := strings.Cut(rest, end)
		require.True(t, found, "%s has no %q", document, end)
		made = before + begin + content + end + after
	}
	goldenfile.Text(t, document, made)
}

package terminal

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const nodes = "node\tstate\taddresses\n" +
	"node-0\talive\thttps://node-0.example.net:7070, unix:/run/millrace/node.sock\n" +
	"node-1\tdead: no heartbeat for 12 s\thttps://node-1.example.net:7070\n"

func TestTableWithRoomIsTabwriters(t *testing.T) {
	var want bytes.Buffer
	w := tabwriter.NewWriter(&want, 0, 8, 2, ' ', 0)
	_, err := w.Write([]byte(nodes))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	assert.Equal(t, want.String(), Table(nodes, 0))
	assert.Equal(t, want.String(), Table(nodes, 200))
}

func TestTableIsFoldedByColumn(t *testing.T) {
	assert.Equal(t, strings.TrimPrefix(`
node    state               addresses
node-0  alive               https://node-0.exam
                            ple.net:7070,
                            unix:/run/millrace/
                            node.sock
node-1  dead: no heartbeat  https://node-1.exam
        for 12 s            ple.net:7070
`, "\n"), Table(nodes, 47))
}

// Whatever the cells hold, no line of a table is wider than the terminal while its columns have room, and no character
// of a cell that is not too long is lost.
func TestTableFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.SliceOfN(rapid.StringMatching(`[a-z/,ä世 ]{0,40}`), 1, 5), 1, 6).Draw(t, "cells")
		width := rapid.IntRange(leastWidth, 120).Draw(t, "width")
		var lines []string
		for _, row := range cells {
			lines = append(lines, strings.Join(row, "\t"))
		}
		text := strings.Join(lines, "\n") + "\n"
		got := Table(text, width)
		for line := range strings.Lines(got) {
			if w := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); w > width {
				t.Fatalf("%d columns of %d: %q", w, width, line)
			}
		}
		count := func(s string) map[rune]int {
			m := map[rune]int{}
			for _, r := range s {
				if r != ' ' && r != '\t' && r != '\n' {
					m[r]++
				}
			}
			return m
		}
		if !strings.Contains(got, "…") {
			assert.Equal(t, count(text), count(got))
		}
	})
}

func TestLongCellsEndWithAnEllipsis(t *testing.T) {
	got := fold(strings.Repeat("x", 1000), 10)
	require.Len(t, got, mostLines)
	assert.Equal(t, strings.Repeat("x", 9)+"…", got[mostLines-1])
	assert.Len(t, fold(strings.Repeat("x", 10*mostLines), 10), mostLines)
	assert.NotContains(t, strings.Join(fold(strings.Repeat("x", 10*mostLines), 10), ""), "…")
}

func TestPaint(t *testing.T) {
	assert.Equal(t, "node-1  "+Red.Text("dead")+": no heartbeat\n", Paint("node-1  dead: no heartbeat\n"))
	assert.Equal(t, Red.Text("failed")+"\n"+Yellow.Text("waiting")+"  2\n", Paint("failed\nwaiting  2\n"))
	for _, plain := range []string{"deadline  7\n", "the node is dead\n", "failed_count  0\n", ""} {
		assert.Equal(t, plain, Paint(plain))
	}
}

func TestWhatIsNoTerminalHasNoWidthAndNoColour(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer f.Close()
	t.Setenv("COLUMNS", "40")
	for _, w := range []interface{ Write([]byte) (int, error) }{f, &bytes.Buffer{}} {
		assert.Zero(t, Width(w))
		assert.False(t, Colours(w))
	}
}

func TestScreenDrawsInPlace(t *testing.T) {
	var b bytes.Buffer
	s := NewScreen(&b, 10)
	require.NoError(t, s.Draw("one\ntwo\n"))
	assert.Equal(t, "\x1b[Jone\ntwo\n", b.String())
	b.Reset()
	require.NoError(t, s.Draw("three that is long\n"))
	assert.Equal(t, "\x1b[2A\r\x1b[Jthree tha…\n", b.String())
	b.Reset()
	require.NoError(t, s.Draw("four\n"))
	assert.Equal(t, "\x1b[1A\r\x1b[Jfour\n", b.String())

	b.Reset()
	plain := NewScreen(&b, 0)
	require.NoError(t, plain.Draw("one\n"))
	require.NoError(t, plain.Draw("two\n"))
	assert.Equal(t, "one\ntwo\n", b.String(), "no terminal: no control sequences")
}

package slicer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/target"
)

// TestScripts runs testdata/*.txt: blocks of commands and their output.
//
//	column NAME page=BYTESxROWS [last=TIMES] [dict=PAGEBYTES:BYTES] [room=BYTES] [list=VALUES] [declared=VALUES]
//	       [first=N] [part=keys|values|scores]
//	file ROWS,ROWS... [indexed]        the row groups of a file of those columns
//	run memory=BYTES batch=N [firstbatch=N] [rows=FIRST+COUNT] [block=N] [buffers=N] [direct] [host]
//	step [N]                           what the slicer does next, and the engine's answer
//	finish                             all further steps, in one line
func TestScripts(t *testing.T) {
	goldenfile.Scripts(t, func(t *testing.T, script string) string {
		s := &scripted{t: t}
		return goldenfile.Blocks(script, func(command string) string { return s.do(strings.Fields(command)) })
	})
}

// scripted is a slicer under a script.
type scripted struct {
	t    *testing.T
	file fakeFile
	run  *fakeRun
}

// arg returns the value of key=value among words, or "".
func arg(words []string, key string) string {
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok && k == key {
			return v
		}
	}
	return ""
}

func (s *scripted) number(w string) uint64 {
	if w == "" {
		return 0
	}
	n, err := strconv.ParseUint(w, 10, 64)
	require.NoError(s.t, err, w)
	return n
}

// pair reads two numbers with a separator between them.
func (s *scripted) pair(w, separator string) (a, b uint64) {
	first, second, _ := strings.Cut(w, separator)
	return s.number(first), s.number(second)
}

func has(words []string, w string) bool {
	for _, o := range words {
		if o == w {
			return true
		}
	}
	return false
}

func (s *scripted) do(w []string) string {
	switch w[0] {
	case "column":
		c := fakeColumn{name: w[1], room: s.number(arg(w, "room")), first: int64(s.number(arg(w, "first")))}
		page, rows := s.pair(arg(w, "page"), "x")
		c.page, c.pageRows, c.lastFactor = page, int64(rows), s.number(arg(w, "last"))
		c.dictPage, c.dict = s.pair(arg(w, "dict"), ":")
		c.values = s.number(arg(w, "list"))
		c.list, c.declared = c.values > 0, s.number(arg(w, "declared"))
		c.part = map[string]program.Part{
			"keys": program.MapKeys, "values": program.MapValues, "scores": program.MapScores,
			"graph": program.GraphFirst, "next": program.GraphNext,
		}[arg(w, "part")]
		s.file.columns = append(s.file.columns, c)
		return ""
	case "file":
		for rows := range strings.SplitSeq(w[1], ",") {
			s.file.groups = append(s.file.groups, int64(s.number(rows)))
		}
		s.file.indexed = has(w, "indexed")
		s.file.build()
		return ""
	case "run":
		first, count := s.pair(arg(w, "rows"), "+")
		if count == 0 {
			count = uint64(s.file.partition.Rows)
		}
		c := Config{Limits: target.Limits{Engine: "fake", Block: s.number(arg(w, "block"))}}
		c.Options = Options{Buffers: int(s.number(arg(w, "buffers"))), Direct: has(w, "direct"), FromHost: has(w, "host")}
		rows := Rows{First: int64(first), Count: int64(count), Batch: int(s.number(arg(w, "batch"))),
			FirstBatch: int(s.number(arg(w, "firstbatch")))}
		var err error
		if s.run, err = s.file.begin(s.number(arg(w, "memory")), c, rows); err != nil {
			return "error: " + err.Error() + "\n"
		}
		return ""
	case "step":
		n, out := uint64(1), ""
		if len(w) > 1 {
			n = s.number(w[1])
		}
		for range n {
			out += s.step()
		}
		return out
	case "finish":
		return s.finish()
	}
	s.t.Fatalf("unknown command %q", strings.Join(w, " "))
	return ""
}

// step shows the next step and the engine's answer.
func (s *scripted) step() string {
	step, res, err := s.run.step()
	out := ""
	switch x := step.(type) {
	case *ReadIndex:
		out = fmt.Sprintf("read the page index of %s in row group %d, from row %d on\n", x.Leaf.Name, x.RowGroup, x.Row)
	case *Relocate:
		out = "relocate"
		for _, m := range x.Moves {
			out += fmt.Sprintf(" %d bytes", m.Len)
		}
		out += "\n"
	case *Execute:
		out = s.showSlice(x) + s.showResult(x, res)
	case *Done:
		out = fmt.Sprintf("done: %d rows, %d values\n", x.Rows, x.Values)
	case *End:
		out = "end\n"
	}
	if err != nil {
		out += "error: " + err.Error() + "\n"
	}
	return out
}

func (s *scripted) showSlice(x *Execute) string {
	sizes := [target.Ranges]uint64{}
	for i, r := range x.Ranges {
		sizes[i] = r.Len
	}
	out := fmt.Sprintf("slice: input %d, dictionaries %d, scratch %d, output %d\n",
		sizes[target.RangeInput], sizes[target.RangeDict], sizes[target.RangeScratch], sizes[target.RangeOutput])
	for _, m := range x.Moves {
		out += fmt.Sprintf("  move %d bytes from %s byte %d\n", m.Len, m.Source, m.From)
	}
	for _, m := range x.Ahead {
		out += fmt.Sprintf("  ahead: move %d bytes from %s byte %d\n", m.Len, m.Source, m.From)
	}
	return out
}

func (s *scripted) showResult(x *Execute, res *program.Result) string {
	if res == nil {
		return ""
	}
	out := ""
	for i, r := range res.Tasks {
		t := &x.Slice.Tasks[i]
		out += fmt.Sprintf("  %s rows %d+%d at byte %d", s.file.columns[t.Column].name, t.Row, t.Count, t.Cursor.Page)
		if t.Cursor.Skip > 0 {
			out += fmt.Sprintf(" skip %d", t.Cursor.Skip)
		}
		for _, flag := range []struct {
			set  bool
			name string
		}{{t.Cursor.Unpacked, "unpacked"}, {t.Cursor.Dict, "with dictionary"}} {
			if flag.set {
				out += ", " + flag.name
			}
		}
		out += fmt.Sprintf(", window %d+%d", t.WindowAt, t.Window.Len)
		switch r.State {
		case program.Done:
			out += ": done"
		case program.Idle:
			out += ": waits"
		default:
			what := map[program.State]string{
				program.MoreInput: "input", program.MoreDict: "dictionary", program.MoreScratch: "room",
				program.MoreOutput: "output",
			}[r.State]
			out += fmt.Sprintf(": lacks %d %s", r.Need, what)
		}
		out += "\n"
	}
	return out
}

// finish runs all further steps.
func (s *scripted) finish() string {
	r := s.run
	for {
		step, _, err := r.step()
		if memory := (*MemoryError)(nil); errors.As(err, &memory) {
			return "error: " + err.Error() + "\n"
		}
		require.NoError(s.t, err)
		if _, ok := step.(*End); ok {
			break
		}
	}
	ahead := ""
	if r.traffic.Ahead > 0 {
		ahead = fmt.Sprintf(", %d ahead", r.traffic.Ahead)
	}
	return fmt.Sprintf("%d rows in %d slices, %d bytes moved, %d of them again%s\n",
		r.rows, r.slices, r.traffic.Planned, r.traffic.Reread, ahead)
}

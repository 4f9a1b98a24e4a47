package slicer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/target"
)

// DefaultCoalesce suits flash, where a second read costs little.
const DefaultCoalesce = 64 << 10

// Config says what a slicer plans for.
type Config struct {
	Program *Program
	Limits  target.Limits
	Memory  *Workspace // the slicer owns it until its last step
	Options Options
	Learned *Learned // what earlier slicers of the program saw; may be nil
}

// Options of a slicer. The zero value works.
type Options struct {
	// Coalesce is the largest read, in bytes, that joins neighbouring column chunks; 0 is DefaultCoalesce.
	Coalesce uint64
	// Gap is the number of unneeded bytes that a joined read may read between two chunks.
	Gap uint64
	// Buffers is how many output buffers there are where half the memory holds them, so that some can be lent; at least 1.
	// Where more than three do not fit, a large memory has three.
	Buffers int
	// Direct says that the engine reads the partition where it lies, so that nothing is moved.
	Direct bool
	// FromHost says that the host reads the windows and stores them (target.FromHost). Extents are not used, and slices
	// leave memory free for the windows of later slices, which Execute.Ahead brings.
	FromHost bool
}

// Rows are the rows [First, First+Count) of a partition, cut into mini-batches of Batch rows. The last may be short,
// and the first one if FirstBatch says so.
type Rows struct {
	First, Count int64
	Batch        int
	FirstBatch   int // rows of the first mini-batch, at most Batch; 0 means Batch
}

// Slicer says which slice of which mini-batch comes next.
type Slicer struct {
	columns        columns
	batch          miniBatch
	arena          arena
	surveyor       surveyor
	starter        starter
	memoryDivision memoryDivision
	output         output
	builder        builder
	results        results

	next, end int64 // rows of the partition still to be made are [next, end)
	batchRows int   // rows of a whole mini-batch
	nextRows  int   // rows of the mini-batch that begins at next, unless the run ends before
	state     state
	steps     steps
}

// steps are the steps that Next returns. Each is used again for the next step of its kind.
type steps struct {
	execute  Execute
	slice    program.Slice // The slice that execute runs.
	relocate Relocate
	done     Done
}

// state says what a slicer does in Next.
type state uint8

const (
	idle     state = iota // between two mini-batches
	starting              // the chunks of a mini-batch are begun
	slicing               // the next slice is built
	built                 // a slice is built and not handed out
	executed              // a slice was handed out, and its result is awaited
)

// New returns the slicer of a run of rows of a partition, which must lie inside it. It fails where the partition is not
// what the program reads.
func New(c Config, p *partition.Partition, rows Rows) (*Slicer, error) {
	s := &Slicer{next: rows.First, end: rows.First + rows.Count, batchRows: rows.Batch, nextRows: rows.Batch}
	if rows.FirstBatch > 0 {
		s.nextRows = rows.FirstBatch
	}
	s.columns = columns{program: c.Program, partition: p, learned: c.Learned.copyForColumns(len(c.Program.Columns))}
	s.arena = arena{workspace: c.Memory}
	s.surveyor = surveyor{columns: &s.columns, batch: &s.batch, direct: c.Options.Direct}
	s.starter = starter{columns: &s.columns, batch: &s.batch, arena: &s.arena, direct: c.Options.Direct}
	s.output = output{columns: &s.columns, batch: &s.batch, arena: &s.arena, ringBuffers: max(c.Options.Buffers, 1)}
	s.memoryDivision = memoryDivision{surveyor: &s.surveyor, arena: &s.arena, output: &s.output}
	s.memoryDivision.mostRowGroups = mostRowGroups(p, rows)
	s.builder = builder{
		memoryDivision: &s.memoryDivision, batch: &s.batch, maxTasks: c.Program.MaxTasks, maxMoves: c.Limits.Moves,
		joining: joining{coalesce: c.Options.Coalesce, gap: c.Options.Gap},
	}
	if c.Options.FromHost {
		s.builder.source = target.FromHost
	}
	if s.builder.joining.coalesce == 0 {
		s.builder.joining.coalesce = DefaultCoalesce
	}
	s.results = results{columns: &s.columns, batch: &s.batch, builder: &s.builder, output: &s.output}
	if !c.Options.Direct {
		block, onDevice := c.Limits.Block, c.Limits.Device
		if c.Options.FromHost {
			block, onDevice = c.Limits.HostBlock, false
		}
		var err error
		if s.surveyor.geometry, err = p.Geometry(block, onDevice); err != nil {
			return nil, err
		}
	}
	if err := s.columns.bindLeaves(s.next, s.end); err != nil {
		return nil, err
	}
	execute, slice := &s.steps.execute, &s.steps.slice
	slice.Digest, slice.Program = c.Program.digest, uint64(len(c.Program.Image))
	execute.Slice = slice
	execute.Ranges[target.RangeProgram] = c.Program.ImageSpan()
	execute.Ranges[target.RangeResult] = c.Memory.result
	execute.Ranges[target.RangeTables] = c.Program.TablesSpan()
	return s, nil
}

// Next returns the next step. After an Execute, Result must be called first. After an error the slicer is at its end.
func (s *Slicer) Next() (Step, error) {
	step, err := s.nextStep()
	if err != nil {
		s.output.releaseBuffer()
	}
	return step, err
}

func (s *Slicer) nextStep() (Step, error) {
	for {
		switch s.state {
		case idle:
			if s.next >= s.end {
				s.columns.noteResumePoints()
				return &End{}, nil
			}
			s.batch.beginRows(s.next, uint32(min(int64(s.nextRows), s.end-s.next)), s.columns.partition)
			s.state = starting
		case starting:
			if ask := s.starter.beginChunks(); ask != nil {
				return ask, nil
			}
			s.starter.listPortions()
			s.output.beginMiniBatch()
			if err := s.output.acquireBuffer(uint32(s.batchRows)); err != nil {
				return nil, err
			}
			s.state = slicing
		case slicing:
			if step := s.relocateStep(); step != nil {
				return step, nil
			}
			if s.batch.isFinished() {
				return s.finishMiniBatch(), nil
			}
			if err := s.builder.buildSlice(); err != nil {
				return nil, err
			}
			s.state = built
		case built:
			if step := s.relocateStep(); step != nil {
				return step, nil
			}
			s.state = executed
			return s.composeExecute(), nil
		case executed:
			return nil, s.results.contractError("the result of a slice was not handed in")
		}
	}
}

// Result takes in the result of the last Execute.
func (s *Slicer) Result(res *program.Result) error {
	if s.state != executed {
		return s.results.contractError("a result of no slice was handed in")
	}
	s.state = slicing
	err := s.results.absorbResult(res)
	if err == nil && s.output.mustGrowBuffer() {
		err = s.output.growBuffer()
	}
	if err != nil {
		s.output.releaseBuffer()
	}
	return err
}

// Index takes in the page index that ReadIndex asked for, or nil if the chunk has none.
func (s *Slicer) Index(x partition.PageIndex) {
	s.starter.takeIndex(x)
}

// Abandon gives up the mini-batch in the making, because a step failed. The slicer is at its end.
func (s *Slicer) Abandon() { s.output.releaseBuffer() }

// Ended reports whether all mini-batches are done.
func (s *Slicer) Ended() bool { return s.state == idle && s.next >= s.end }

// FirstRow returns the first row of the partition that no finished mini-batch holds.
func (s *Slicer) FirstRow() int64 { return s.next }

// BatchRows returns the rows of the mini-batch in the making.
func (s *Slicer) BatchRows() uint32 { return s.batch.rows }

// Learned returns the sizes seen in the partition's pages, for later slicers of the program.
func (s *Slicer) Learned() *Learned { return &s.columns.learned }

// relocateStep returns the step that brings the mini-batch to its buffer, or nil if it lies there.
func (s *Slicer) relocateStep() Step {
	if s.output.movedFrom == nil {
		return nil
	}
	s.steps.relocate.Moves = s.output.relocationMoves()
	return &s.steps.relocate
}

// composeExecute writes the slice that was built.
func (s *Slicer) composeExecute() *Execute {
	b, x, slice := &s.builder, &s.steps.execute, &s.steps.slice
	slice.Layout, slice.ValueCap = s.output.outputLayout()
	slice.Rows, slice.Values = s.batch.rows, s.output.valuesWritten
	slice.Tasks = b.appendTasks(slice.Tasks[:0])
	x.Moves = b.moves
	if b.ahead = b.ahead[:0]; s.results.advanced {
		b.planAhead(s.batchRows, s.end)
	}
	x.Ahead, x.Traffic = b.ahead, b.traffic
	s.arena.setMemoryRanges(&x.Ranges)
	x.Ranges[target.RangeOutput] = s.output.buffer.Span
	s.output.bufferWritten = true
	return x
}

// finishMiniBatch ends the mini-batch.
func (s *Slicer) finishMiniBatch() *Done {
	placement, _ := s.output.outputLayout()
	s.steps.done = Done{Buffer: s.output.buffer, Rows: s.batch.rows, Layout: placement, Values: s.output.packedValues()}
	if !s.surveyor.direct {
		s.steps.done.Needed = s.batch.neededBytes()
	}
	s.output.buffer = nil
	s.next += int64(s.batch.rows)
	s.nextRows = s.batchRows
	s.state = idle
	return &s.steps.done
}

// ColumnsAt names the row group and the columns of the slice to which a byte of the drive belongs: two columns if
// one ends in the byte's block. It returns "" if they are not known.
func (s *Slicer) ColumnsAt(device uint64) string {
	if s.columns.isTextSource() {
		return ""
	}
	var names []string
	group := 0
	for _, i := range s.builder.placed {
		c := s.batch.portions[i].chunk
		if c.isAbsent() {
			continue
		}
		lo, hi := s.surveyor.geometry.Cover(c.start, c.start+c.length)
		for _, r := range s.surveyor.geometry.AppendRuns(nil, lo, hi) {
			if name := s.columns.columnName(c); r.From <= device && device-r.From < r.Len && !slices.Contains(names, name) {
				names, group = append(names, name), c.group
			}
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("row group %d: column %s", group, strings.Join(names, " or "))
}

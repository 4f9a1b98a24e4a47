package exploration

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/timing"
)

// ErrOptions says that an option of Explore is wrong.
var ErrOptions = errors.New("exploration")

// Bounds of Options.
const (
	MaxElements = 32 // of one unit
	MaxClocks   = 16
)

// Options say what to explore. Board, Workload and Rows are required.
type Options struct {
	Board    Board
	Workload timing.Workload
	Rows     int   // Rows are those of a mini-batch.
	Elements int   // most of one unit; 0: 16
	Clocks   []int // kHz; empty: 100, 150, 200 and 223 MHz, PreSto's
}

// Elements are how many elements a design has of each unit. Those of the decoder have several lanes, the others one.
type Elements struct {
	Decode    int `json:"parquet"`
	Bucketize int `json:"bucketize"`
	Hash      int `json:"sigrid_hash"`
	Log       int `json:"log"`
}

// Design is one design of the FPGA.
type Design struct {
	Name          string   `json:"name"`
	ClockKHz      int      `json:"clock_khz"` // requested
	Elements      Elements `json:"elements"`
	DecoderLanes  int      `json:"decoder_lanes"`  // DecoderLanes are those of one element.
	Area          *Area    `json:"area,omitempty"` // nil: only the shares are known
	Shares        Shares   `json:"shares"`
	LargestShare  float64  `json:"largest_share"`
	AreaSource    string   `json:"area_source"`
	RowsPerSecond float64  `json:"rows_per_second"`
	Bottleneck    string   `json:"bottleneck"`
}

// Report is what Explore found.
type Report struct {
	Board    string   `json:"board"`
	Limit    Area     `json:"limit"` // Limit bounds a design, beside the platform.
	Tool     string   `json:"tool"`  // Tool synthesised the units.
	Designs  int      `json:"designs"`
	Fitting  int      `json:"fitting_designs"`
	PreSto   Design   `json:"presto"`
	Counted  Design   `json:"presto_counts"` // PreSto's counts of elements, made of the units of fpga/rtl
	Best     Design   `json:"best"`
	Frontier []Design `json:"frontier"` // no smaller design has as many rows/s; the smallest first
}

// withDefaults returns the options with defaults in place of zeroes, or an error.
func (o Options) withDefaults() (Options, error) {
	o.Elements = cmp.Or(o.Elements, 16)
	if len(o.Clocks) == 0 {
		o.Clocks = []int{100_000, 150_000, 200_000, timing.PreStoClockHz / 1000}
	}
	o.Clocks = slices.Compact(slices.Sorted(slices.Values(o.Clocks)))
	switch {
	case o.Elements < 1 || o.Elements > MaxElements:
		return o, fmt.Errorf("%w: %d elements of a unit: want 1 to %d", ErrOptions, o.Elements, MaxElements)
	case len(o.Clocks) > MaxClocks:
		return o, fmt.Errorf("%w: %d clocks: want at most %d", ErrOptions, len(o.Clocks), MaxClocks)
	case o.Clocks[0] < image.MinClockKHz || o.Clocks[len(o.Clocks)-1] > image.MaxClockKHz:
		return o, fmt.Errorf("%w: clocks of %d to %d kHz: want %d to %d", ErrOptions, o.Clocks[0],
			o.Clocks[len(o.Clocks)-1], image.MinClockKHz, image.MaxClockKHz)
	case o.Rows < 1:
		return o, fmt.Errorf("%w: mini-batches of %d rows: want 1 or more", ErrOptions, o.Rows)
	}
	return o, nil
}

// Explore tries all designs. The best has the most rows/s; of several, the one with the smallest share of the resource
// of which it takes the largest, then the one with the lowest clock.
func Explore(o Options) (Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Report{}, err
	}
	e, tool, err := describedElements(!o.Workload.Fixed)
	if err != nil {
		return Report{}, err
	}
	return o.explore(e, tool)
}

func (o Options) explore(e elements, tool string) (Report, error) {
	r := Report{Board: o.Board.Name, Limit: o.Board.Limit(), Tool: tool}
	work := o.Workload.Work(o.Rows)
	var fitting []candidate
	for _, clock := range o.Clocks {
		for n := range o.counts(work) {
			r.Designs++
			c := o.candidate(e, n, clock, work)
			if c.area.within(r.Limit) {
				fitting = append(fitting, c)
			}
		}
	}
	if r.Fitting = len(fitting); r.Fitting == 0 {
		return r, fmt.Errorf("%w: no design fits the board %s", ErrOptions, o.Board.Name)
	}
	slices.SortFunc(fitting, candidate.compare)
	for i := range fitting {
		if c := &fitting[i]; i == 0 || c.rows > r.Best.RowsPerSecond {
			r.Best = o.design(c, e, tool)
			r.Frontier = append(r.Frontier, r.Best)
		}
	}
	r.Best.Name = "best"
	r.PreSto, r.Counted = o.presto(work), o.counted(e, work, tool)
	return r, nil
}

// counts yields every choice of elements. Of a unit that has nothing to do there is none.
func (o Options) counts(w timing.Work) func(yield func(Elements) bool) {
	bounds := func(values float64) (least, most int) {
		if values == 0 {
			return 0, 0
		}
		return 1, o.Elements
	}
	return func(yield func(Elements) bool) {
		leastDecode, mostDecode := bounds(w.Decoded)
		leastBucketize, mostBucketize := bounds(w.Bucketized)
		leastHash, mostHash := bounds(w.Hashed)
		leastLog, mostLog := bounds(w.Logged)
		for d := leastDecode; d <= mostDecode; d++ {
			for b := leastBucketize; b <= mostBucketize; b++ {
				for h := leastHash; h <= mostHash; h++ {
					for l := leastLog; l <= mostLog; l++ {
						if !yield(Elements{d, b, h, l}) {
							return
						}
					}
				}
			}
		}
	}
}

// candidate is a design that is tried.
type candidate struct {
	elements Elements
	clock    int
	area     Area
	largest  float64 // share
	rows     float64 // a second
	stage    string
}

func (o Options) candidate(e elements, n Elements, clock int, w timing.Work) candidate {
	c := candidate{elements: n, clock: clock}
	c.area = c.area.plus(n.Decode, e.decode.area).plus(n.Bucketize, e.bucketize.area).plus(n.Hash, e.hash.area).
		plus(n.Log, e.log.area)
	c.largest = o.Board.shares(c.area).largest()
	d := o.Board.Device
	d.ClockHz = 1e3 * float64(clock)
	d.Decode, d.Bucketize, d.Hash, d.Log = e.decode.times(n.Decode), e.bucketize.times(n.Bucketize),
		e.hash.times(n.Hash), e.log.times(n.Log)
	c.rows, c.stage = rate(d, w, o.Rows)
	return c
}

// times returns the speed of n elements.
func (e element) times(n int) timing.Elements {
	e.timing.Count = n
	return e.timing
}

// rate returns the rows a second of a device, and the stage that bounds it. The output does not count, as in a plan.
func rate(d timing.Device, w timing.Work, rows int) (rowsPerSecond float64, stage string) {
	t := d.Times(w)
	t.Rows = rows
	stage, _ = t.Bottleneck(false)
	return t.RowsPerSecond(false), stage
}

// compare orders designs: the smaller first, of those as large the faster, then the one with the lower clock.
func (c candidate) compare(x candidate) int {
	return cmp.Or(cmp.Compare(c.largest, x.largest), cmp.Compare(x.rows, c.rows), cmp.Compare(c.clock, x.clock),
		cmp.Compare(c.area.LUT, x.area.LUT), cmp.Compare(c.elements.Decode, x.elements.Decode),
		cmp.Compare(c.elements.Hash, x.elements.Hash), cmp.Compare(c.elements.Log, x.elements.Log))
}

func (o Options) design(c *candidate, e elements, tool string) Design {
	area := c.area
	return Design{Name: "frontier", ClockKHz: c.clock, Elements: c.elements, DecoderLanes: e.decode.timing.Lanes,
		Area: &area, Shares: o.Board.shares(area), LargestShare: c.largest, AreaSource: "fpga/rtl, " + tool,
		RowsPerSecond: c.rows, Bottleneck: c.stage}
}

// presto is PreSto's design.
func (o Options) presto(w timing.Work) Design {
	d := timing.SmartSSD()
	p := Design{Name: "PreSto", ClockKHz: int(d.ClockHz / 1e3), DecoderLanes: d.Decode.Lanes,
		Elements:   Elements{d.Decode.Count, d.Bucketize.Count, d.Hash.Count, d.Log.Count},
		AreaSource: "published: PreSto, Table II", Shares: prestoShares, LargestShare: prestoShares.largest()}
	p.RowsPerSecond, p.Bottleneck = rate(d, w, o.Rows)
	return p
}

// counted is PreSto's counts of elements, made of the units of fpga/rtl: as many values of the decoder a cycle.
func (o Options) counted(e elements, w timing.Work, tool string) Design {
	p := timing.SmartSSD()
	n := Elements{Bucketize: p.Bucketize.Count, Hash: p.Hash.Count, Log: p.Log.Count}
	n.Decode = (p.Decode.Count*p.Decode.Lanes + e.decode.timing.Lanes - 1) / e.decode.timing.Lanes
	c := o.candidate(e, n, int(p.ClockHz/1e3), w)
	d := o.design(&c, e, tool)
	d.Name = "PreSto's counts"
	return d
}

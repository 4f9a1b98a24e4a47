package stock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/clamp"
	"github.com/millrace/millrace/fpga/operator/convert"
	"github.com/millrace/millrace/fpga/operator/fillnull"
	"github.com/millrace/millrace/fpga/operator/hextoint"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/positivemodulus"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/operator/vocabulary"
	"github.com/millrace/millrace/fpga/program"
)

// namedStock is a stock image with a name: some units of this build, and the parameters that a paper or a guess gives
// their designs.
type namedStock struct {
	name       string
	units      []program.Unit
	parameters image.Parameters // units in any order
	selfTests  []image.Vector
}

// Figures of the named stock images.
func published(v uint32, where string) image.Figure {
	return image.Figure{Value: v, Source: image.SourcePublished, Reference: where}
}

func assumed(v uint32, why string) image.Figure {
	return image.Figure{Value: v, Source: image.SourceAssumed, Reference: why}
}

func requested(v uint32) image.Figure { return image.Figure{Value: v, Source: image.SourceRequested} }

// namedStocks are the named stock images, in the order of their names' list.
func namedStocks() []namedStock {
	chained := assumed(1, "decoded values reach the operators on chip")
	overlapped := assumed(2, "the stages work on successive mini-batches at the same time")
	noLatency := func(paper string) image.Figure { return assumed(0, paper+" states no latencies") }

	presto := image.Parameters{Clock: published(223_000, "PreSto, Table II"), Buffers: overlapped, Chained: chained}
	for _, u := range []program.Unit{program.UnitParquet, bucketize.Unit, sigridhash.Unit,
		log.Unit} {
		presto.Units = append(presto.Units, image.UnitParameters{Unit: uint16(u),
			Elements: assumed(8, "common factor of the DSP, URAM and BRAM that PreSto's Table II implies"),
			Lanes:    assumed(1, "a value a cycle"), Interval: assumed(1, "a value a cycle"), Latency: noLatency("PreSto")})
	}

	const oneDataflow = "one dataflow of dense and one of sparse features"
	piper := image.Parameters{Clock: assumed(250_000, "Piper decodes 11 GB in 11.00 s at 4 bytes a cycle"),
		Buffers: overlapped, Chained: published(1, "Piper, introduction: column-wise pipelined execution")}
	add := func(p *image.Parameters, u program.Unit, lanes, interval image.Figure, elements, latency image.Figure) {
		p.Units = append(p.Units, image.UnitParameters{Unit: uint16(u), Elements: elements, Lanes: lanes, Interval: interval,
			Latency: latency})
	}
	for _, x := range []struct {
		unit     program.Unit
		interval image.Figure
	}{
		{clamp.Unit, published(1, "Piper, Neg2Zero")}, {log.Unit, published(1, "Piper, Logarithm")},
		{positivemodulus.Unit, published(1, "Piper, Modulus")},
		{vocabulary.Unit, published(2, "Piper, ApplyVocab with a small table in on-chip RAM")},
	} {
		add(&piper, x.unit, assumed(1, "a value a cycle"), x.interval, assumed(1, oneDataflow), noLatency("Piper"))
	}
	add(&piper, program.UnitText,
		published(4, "Piper, parallel UTF-8 decoding: an input of four bytes; a lane is a byte"),
		published(1, "Piper, Decode"), assumed(1, oneDataflow), noLatency("Piper"))

	port := assumed(16, "MiniPipe, figure 5: a port of 64 bytes; values of 4 bytes")
	minipipe := image.Parameters{Clock: published(200_000, "MiniPipe, 4.1: kernel frequency of its pipelines"),
		Buffers: overlapped, Chained: published(1, "MiniPipe, 3.4: operators run in a pipelined manner")}
	for _, x := range []struct {
		unit     program.Unit
		lanes    image.Figure
		interval image.Figure
	}{
		{program.UnitParquet, port, assumed(1, "it keeps up with the operators")},
		{clamp.Unit, port, published(1, "MiniPipe, 3.4.1: Neg2Zero")},
		{log.Unit, port, published(1, "MiniPipe, 3.4.1: Logarithm")},
		{hextoint.Unit, assumed(8, "MiniPipe, figure 5: a port of 64 bytes; ids of 8 digits"),
			published(1, "MiniPipe, 3.4.2: Hex2Int")},
		{positivemodulus.Unit, port, published(1, "MiniPipe, 3.4.2: Modulus")},
		{vocabulary.Unit, port, published(1, "MiniPipe, 3.4.2: VocabMap in on-chip memory")},
	} {
		add(&minipipe, x.unit, x.lanes, x.interval, assumed(1, oneDataflow), noLatency("MiniPipe"))
	}

	passthrough := image.Parameters{Clock: requested(223_000), Buffers: requested(2), Chained: chained}
	add(&passthrough, program.UnitParquet, requested(8), assumed(1, "a group of values a cycle"), requested(1),
		assumed(0, "no unit of fpga/rtl is a whole decoder"))

	plain := []program.Unit{fillnull.Unit, convert.Unit, program.UnitParquet}
	pipers := []program.Unit{fillnull.Unit, convert.Unit, clamp.Unit, log.Unit,
		positivemodulus.Unit, vocabulary.Unit}
	return []namedStock{
		{"presto", append(slices.Clone(plain), clamp.Unit, log.Unit, bucketize.Unit,
			sigridhash.Unit), presto, []image.Vector{operatorsVector(log.Unit, bucketize.Unit,
			sigridhash.Unit)}},
		{"piper", append(slices.Clone(pipers), program.UnitText), piper, []image.Vector{criteoVector(), lookupsVector()}},
		{"minipipe", append(slices.Clone(pipers), hextoint.Unit, program.UnitParquet), minipipe,
			[]image.Vector{operatorsVector(log.Unit, positivemodulus.Unit, hextoint.Unit,
				vocabulary.Unit)}},
		{"passthrough", plain, passthrough, []image.Vector{operatorsVector()}},
	}
}

// Names lists the names of the stock images that have one. The stock image of drives ([Image]) has none.
func Names() []string {
	var names []string
	for _, s := range namedStocks() {
		names = append(names, s.name)
	}
	return names
}

// Named builds the stock image of a name: the units of a paper's design and the parameters that the paper states,
// each with its place, or that are assumed, each with the reason. Like every image they say nothing of what a board
// achieved. The bytes are the same in every run of one build.
//
//	presto       PreSto: Bucketize, SigridHash and Log over Parquet
//	piper        Piper: Criteo's text, modulus, vocabulary and logarithm
//	minipipe     MiniPipe: Parquet with hexadecimal ids, modulus, vocabulary and logarithm
//	passthrough  no operator: decodes Parquet, fills nulls, converts
func Named(name string) ([]byte, error) {
	stocks := namedStocks()
	i := slices.IndexFunc(stocks, func(s namedStock) bool { return s.name == name })
	if i < 0 {
		return nil, fmt.Errorf("image: no stock image %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	s := &image.Spec{
		Platform: Platform, Interface: Interface(), Memories: memories(), Partition: partition(),
		SelfTest: stocks[i].selfTests, Parameters: &stocks[i].parameters,
		Build: image.BuildInfo{Tool: "millrace", Reproducible: true},
	}
	for _, u := range program.Known() {
		if slices.Contains(stocks[i].units, u.Unit) {
			s.AddUnit(u)
		}
	}
	slices.SortFunc(s.Parameters.Units, func(a, b image.UnitParameters) int { return int(a.Unit) - int(b.Unit) })
	return image.Build(s)
}

// NameOf returns the name of the stock image with an id, and "" for other images.
func NameOf(id image.ID) (string, error) {
	for _, name := range Names() {
		b, err := Named(name)
		if err != nil {
			return "", err
		}
		m, err := image.Parse(b)
		if err != nil {
			return "", err
		}
		if m.ID == id {
			return name, nil
		}
	}
	return "", nil
}

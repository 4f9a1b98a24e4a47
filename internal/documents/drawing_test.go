package documents

import (
	"fmt"
	"strings"
)

// Picture is a drawing of boxes and arrows. All lengths are in pixels; the origin is the upper left corner.
type Picture struct {
	Width, Height int
	Title         string // read aloud where the picture cannot be seen
	Boxes         []Box
	Arrows        []Arrow
}

// Box is a rectangle with a title and lines of text.
type Box struct {
	X, Y, Width, Height int
	Kind                Kind
	Title               string
	Lines               []string
}

// Kind chooses a box's colours.
type Kind uint8

// The kinds of boxes.
const (
	Frame  Kind = iota // holds other boxes
	Part               // a part that works
	Idle               // a part that waits for its turn
	Person             // somebody who uses it
)

// Arrow goes from one point to another, with a text beside its middle.
type Arrow struct {
	FromX, FromY, ToX, ToY int
	Text                   string
	TextX, TextY           int
	Dashed                 bool // says something instead of carrying mini-batches
}

// Overview is the picture of README.md: the parts of Millrace.
func Overview() Picture {
	drive := func(y int, kind Kind, title string) []Box {
		return []Box{
			{X: 40, Y: y, Width: 420, Height: 92, Kind: kind, Title: title},
			{X: 54, Y: y + 30, Width: 108, Height: 50, Kind: Frame, Title: "flash", Lines: []string{"Parquet rows"}},
			{X: 186, Y: y + 30, Width: 136, Height: 50, Kind: Frame, Title: "engine", Lines: []string{"decode, hash, log"}},
			{X: 346, Y: y + 30, Width: 100, Height: 50, Kind: Frame, Title: "memory", Lines: []string{"tensors"}},
		}
	}
	p := Picture{Width: 960, Height: 620,
		Title: "Drives preprocess the rows that they store; a train manager runs as many of them as the trainer needs."}
	p.Boxes = append(p.Boxes,
		Box{X: 20, Y: 120, Width: 460, Height: 370, Kind: Frame, Title: "storage node"},
		Box{X: 640, Y: 120, Width: 300, Height: 370, Kind: Frame, Title: "training machine"},
		Box{X: 300, Y: 16, Width: 380, Height: 72, Kind: Part, Title: "train manager",
			Lines: []string{"measures T and P, runs T/P drives at once,", "leases splits, keeps checkpoints"}},
		Box{X: 660, Y: 170, Width: 260, Height: 120, Kind: Part, Title: "input queue",
			Lines: []string{"dense [B, D], label [B]", "keyed jagged tensor (KJT)", "bounded in bytes; a full queue",
				"stops the drives"}},
		Box{X: 660, Y: 350, Width: 260, Height: 110, Kind: Part, Title: "trainer",
			Lines: []string{"takes T rows/s", "acknowledges mini-batches,", "keeps a token to resume from"}},
	)
	p.Boxes = append(p.Boxes, drive(160, Part, "drive 0: makes P rows/s")...)
	p.Boxes = append(p.Boxes, drive(268, Part, "drive 1: makes P rows/s")...)
	p.Boxes = append(p.Boxes, drive(376, Idle, "drive 2: its turn comes when another is through")...)
	for i, user := range []struct{ who, does, with string }{
		{"storage-node operator", "runs nodes, deploys signed images", "millrace node, image, drive"},
		{"training launcher", "submits jobs, takes mini-batches, resumes", "trainmgr in Go, millrace in Python"},
		{"capacity planner", "sizes drives, watts and dollars", "millrace plan, millrace bench"},
	} {
		p.Boxes = append(p.Boxes, Box{X: 20 + 313*i, Y: 520, Width: 294, Height: 84, Kind: Person, Title: user.who,
			Lines: []string{user.does, user.with}})
	}
	for _, y := range []int{160, 268, 376} {
		p.Arrows = append(p.Arrows, Arrow{FromX: 162, FromY: y + 55, ToX: 186, ToY: y + 55}, Arrow{FromX: 322, FromY: y + 55,
			ToX: 346, ToY: y + 55})
	}
	p.Arrows = append(p.Arrows,
		Arrow{FromX: 460, FromY: 206, ToX: 660, ToY: 220, Text: "mini-batches", TextX: 560, TextY: 196},
		Arrow{FromX: 460, FromY: 314, ToX: 660, ToY: 250, Text: "mini-batches", TextX: 560, TextY: 304},
		Arrow{FromX: 790, FromY: 290, ToX: 790, ToY: 350},
		Arrow{FromX: 360, FromY: 88, ToX: 300, ToY: 120, Dashed: true, Text: "grants", TextX: 290, TextY: 106},
		Arrow{FromX: 720, FromY: 120, ToX: 640, ToY: 88, Dashed: true, Text: "T, acknowledgements", TextX: 770, TextY: 104},
	)
	return p
}

// colours of a kind of box: fill, line and text.
func (k Kind) colours() (fill, line, text string) {
	switch k {
	case Part:
		return "#e3f0e6", "#2f7d46", "#12341d"
	case Idle:
		return "#f1f1f1", "#9a9a9a", "#6a6a6a"
	case Person:
		return "#e6edf7", "#3b6ea8", "#142c48"
	default:
		return "#ffffff", "#777777", "#222222"
	}
}

// Draw returns a picture as SVG.
func Draw(p Picture) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" role="img">`+"\n", p.Width,
		p.Height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(p.Title))
	b.WriteString(`<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" ` +
		`orient="auto">` +
		`<path d="M0 0L8 4L0 8z" fill="#444444"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", p.Width, p.Height)
	for _, box := range p.Boxes {
		fill, line, text := box.Kind.colours()
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s"/>`+"\n", box.X, box.Y,
			box.Width, box.Height, fill, line)
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="14" font-weight="bold" fill="%s">%s</text>`+"\n", box.X+10, box.Y+19,
			text, escape(box.Title))
		for i, l := range box.Lines {
			fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="12" fill="%s">%s</text>`+"\n", box.X+10, box.Y+38+18*i, text,
				escape(l))
		}
	}
	for _, a := range p.Arrows {
		dash := ""
		if a.Dashed {
			dash = ` stroke-dasharray="5 4"`
		}
		fmt.Fprintf(&b,
			`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#444444" stroke-width="1.5"%s marker-end="url(#head)"/>`+"\n",
			a.FromX, a.FromY, a.ToX, a.ToY, dash)
		if a.Text != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="12" text-anchor="middle" fill="#444444">%s</text>`+"\n", a.TextX,
				a.TextY, escape(a.Text))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// escape writes a text so that XML reads it.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

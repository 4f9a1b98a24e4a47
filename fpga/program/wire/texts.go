package wire

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
)

// The texts that picks take as keys are written once each, in a section of their own, in the order in which the picks
// name them first. In the section of maps a pick has the number of its text. A program without such keys has no such
// section.

// picksTexts reports whether a pick takes a key of text.
func picksTexts(p *program.Program) bool {
	for i := range p.Columns {
		if p.TextKeys(i) && len(p.Columns[i].Picks) > 0 {
			return true
		}
	}
	return false
}

// textNumbers has the number of each text.
type textNumbers map[string]int

// number returns the number of a text, which is the next one for a text that was not named before.
func (n textNumbers) number(text string) int {
	at, ok := n[text]
	if !ok {
		at = len(n)
		n[text] = at
	}
	return at
}

// appendTexts appends the section of texts.
func appendTexts(p *program.Program, b []byte) []byte {
	var list []string
	seen := textNumbers{}
	for i := range p.Columns {
		if !p.TextKeys(i) {
			continue
		}
		for _, k := range p.Columns[i].Picks {
			if seen.number(k.Text) == len(list) {
				list = append(list, k.Text)
			}
		}
	}
	b = le.AppendUint32(b, uint32(len(list)))
	b = le.AppendUint32(b, 0)
	for _, text := range list {
		b = le.AppendUint32(b, uint32(len(text)))
		b = le.AppendUint32(b, 0)
		start := len(b)
		b = padTo8Bytes(append(b, text...), start)
	}
	return b
}

// readTableTexts reads the section of texts, and gives them to the picks that have their numbers.
func readTexts(p *program.Program, r *reader) {
	head := r.takeBytes(8, "texts")
	if r.err != nil {
		return
	}
	r.checkZeros(head[4:], "texts")
	texts := make([]string, r.checkCount(uint64(le.Uint32(head)), program.MaxSinks*program.MaxColumns, textSize, "texts"))
	for i := range texts {
		b := r.takeBytes(textSize, "text")
		if r.err != nil {
			return
		}
		r.checkZeros(b[4:], "text")
		n := uint64(le.Uint32(b))
		if n > program.MaxName {
			r.failCorrupt("a text of %d bytes, want at most %d", n, program.MaxName)
			return
		}
		text := r.takePadded(n, "text")
		if !utf8.Valid(text) {
			r.failCorrupt("the text %.64q is not UTF-8", text)
		}
		if texts[i] = string(text); slices.Contains(texts[:i], texts[i]) {
			r.failCorrupt("the text %.64q a second time", texts[i])
		}
	}
	named := 0
	for i := range p.Columns {
		if !p.TextKeys(i) {
			continue
		}
		for j := range p.Columns[i].Picks {
			k := &p.Columns[i].Picks[j]
			if k.Key < 0 || k.Key > int64(named) || k.Key >= int64(len(texts)) {
				r.failCorrupt("key %d of column %d is text %d of %d, behind text %d", j, i, k.Key, len(texts), named-1)
				return
			}
			named = max(named, int(k.Key)+1)
			k.Key, k.Text = 0, texts[k.Key]
		}
	}
	if r.err == nil && (named == 0 || named < len(texts)) {
		r.failCorrupt("%d texts, of which keys name %d", len(texts), named)
	}
}

// checkTexts checks that the picks of maps whose keys are text have got their texts.
func checkTexts(p *program.Program, read bool) error {
	if picksTexts(p) != read {
		return corruptError("program", "%s", fmt.Sprintf("keys of text: %t, and a section of texts: %t", !read, read))
	}
	return nil
}

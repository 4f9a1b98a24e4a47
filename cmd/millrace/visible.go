package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible shows what people read on a terminal, where names come from files, drives and hosts that are not ours: what
// is not text, or would steer the terminal, is written as Go writes it in quotes. Lines stay lines.
func visible(s string) string {
	odd := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r))
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, odd) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || odd(r) {
			quoted := strconv.QuoteToASCII(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// cell is a foreign name as a table's cell. One that is not all text is put in quotes: tabs and line ends would make
// cells and rows of their own, and text/tabwriter gives the byte 0xff a meaning.
func cell(name string) string {
	if visible(name) != name || strings.ContainsAny(name, "\n\t") {
		return strconv.Quote(name)
	}
	return name
}

// Package tracetest holds the bytes that real hosts sent when they connected to Millrace's target, as text, for tests
// to send again and as seeds for fuzzing. Package kerneltest records it.
//
// # Format
//
// A line is a PDU: the number of its connection, in the order in which they were opened, and all its bytes in
// hexadecimal, where (n) stands for n zeros; a comment from # on says what it is. Lines are in the order in which the
// PDUs came.
//
//	0 (4)80(123) # ICReq
//	0 0400482000044800... # Connect
//
// # Concurrency
//
// Everything here is a function of its arguments.
//
// # Errors
//
// Read says in which line what is wrong.
package tracetest

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

//go:embed testdata/*.txt
var golden embed.FS

// Bounds of a trace.
const (
	MaxPDU  = 2 << 20 // bytes of a PDU
	maxLine = 1 << 20
	header  = 8 // bytes of a PDU's common header
	run     = 4 // zeros from which on they are counted instead of written
)

// PDU is a PDU that a host sent.
type PDU struct {
	Conn  int // Conn numbers the connections from 0.
	Bytes []byte
	What  string // for people
}

// Offset is where the data begins, 0 where there is none.
func (p PDU) Offset() int { return int(p.Bytes[3]) }

// Append appends the PDU's line.
func (p PDU) Append(b []byte) []byte {
	b = strconv.AppendInt(b, int64(p.Conn), 10)
	b = append(b, ' ')
	for rest := p.Bytes; len(rest) > 0; {
		n := len(rest) - len(bytes.TrimLeft(rest, "\x00"))
		if n >= run {
			b = fmt.Appendf(b, "(%d)", n)
			rest = rest[n:]
			continue
		}
		b = hex.AppendEncode(b, rest[:1])
		rest = rest[1:]
	}
	if p.What != "" {
		b = append(append(b, " # "...), p.What...)
	}
	return append(b, '\n')
}

// Read reads a trace.
func Read(text []byte) ([]PDU, error) {
	var all []PDU
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, maxLine)
	for line := 1; in.Scan(); line++ {
		before, what, _ := strings.Cut(in.Text(), "#")
		if strings.TrimSpace(before) == "" {
			continue
		}
		p, err := parse(before)
		if err != nil {
			return nil, fmt.Errorf("trace: line %d: %w", line, err)
		}
		p.What = strings.TrimSpace(what)
		all = append(all, p)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return all, nil
}

func parse(line string) (p PDU, err error) {
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return p, fmt.Errorf("%d words where a connection and a PDU belong", len(fields))
	}
	if p.Conn, err = strconv.Atoi(fields[0]); err != nil || p.Conn < 0 {
		return p, fmt.Errorf("connection %q: want a number", fields[0])
	}
	for rest := fields[1]; rest != ""; {
		n := 0
		if count, after, ok := strings.Cut(rest, ")"); rest[0] == '(' && ok {
			if n, err = strconv.Atoi(count[1:]); err != nil || n < 1 {
				return p, fmt.Errorf("%q): want a number of zeros", count)
			}
			rest = after
		}
		if len(p.Bytes)+n+1 > MaxPDU {
			return p, fmt.Errorf("more than %d bytes", MaxPDU)
		}
		if n > 0 {
			p.Bytes = append(p.Bytes, make([]byte, n)...)
			continue
		}
		digits := rest[:min(2, len(rest))]
		if p.Bytes, err = hex.AppendDecode(p.Bytes, []byte(digits)); err != nil {
			return p, fmt.Errorf("%q: %w", digits, err)
		}
		rest = rest[len(digits):]
	}
	if len(p.Bytes) < header || int(binary.LittleEndian.Uint32(p.Bytes[4:])) != len(p.Bytes) {
		return p, errors.New("the PDU is not as long as it says")
	}
	return p, nil
}

// Golden are the traces that are kept, by name: linux-6.1-plain and so on.
func Golden() (map[string][]PDU, error) {
	files, err := golden.ReadDir("testdata")
	if err != nil {
		return nil, err
	}
	all := map[string][]PDU{}
	for _, f := range files {
		text, err := golden.ReadFile("testdata/" + f.Name())
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(f.Name(), ".txt")
		if all[name], err = Read(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

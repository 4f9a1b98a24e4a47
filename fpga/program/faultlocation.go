package program

import (
	"fmt"
	"strconv"
	"strings"
)

// FaultLocation says where in a column chunk a fault lies. A result's Message begins with the location if the fault
// has one, so that a host that knows the chunk's place in its file can name the page's place there.
type FaultLocation struct {
	Column string // at most 80 characters of the column's name
	Page   uint32 // number of the page in its chunk
	Offset uint64 // byte of the chunk at which the page's header begins
}

// String renders `column "c": page 3 at byte 4023 of its chunk`.
func (p FaultLocation) String() string {
	return fmt.Sprintf("column %.80q: page %d at byte %d of its chunk", p.Column, p.Page, p.Offset)
}

// CutFaultLocation splits a message into the location at its beginning and the text behind it. ok reports whether
// the message begins with a location.
func CutFaultLocation(message string) (p FaultLocation, fault string, ok bool) {
	rest, ok := strings.CutPrefix(message, "column ")
	if !ok {
		return FaultLocation{}, message, false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return FaultLocation{}, message, false
	}
	if p.Column, err = strconv.Unquote(quoted); err != nil {
		return FaultLocation{}, message, false
	}
	at, fault, ok := strings.Cut(rest[len(quoted):], " of its chunk: ")
	if n, err := fmt.Sscanf(at, ": page %d at byte %d", &p.Page, &p.Offset); !ok || n != 2 || err != nil {
		return FaultLocation{}, message, false
	}
	return p, fault, true
}

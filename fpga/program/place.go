package program

import (
	"fmt"
	"strconv"
	"strings"
)

// Place is where in a column chunk a fault lies. A result's Message begins with it where the fault has one, so that a
// host that knows where the chunk lies in its file can say where the page does.
type Place struct {
	Column string // at most 80 characters of the column's name
	Page   uint32 // number of the page in its chunk
	Offset uint64 // byte of the chunk at which the page's header begins
}

// String renders `column "c": page 3 at byte 4023 of its chunk`.
func (p Place) String() string {
	return fmt.Sprintf("column %.80q: page %d at byte %d of its chunk", p.Column, p.Page, p.Offset)
}

// CutPlace parts a message into the place that it begins with and what follows it. It is not ok where the message
// begins otherwise.
func CutPlace(message string) (p Place, fault string, ok bool) {
	rest, ok := strings.CutPrefix(message, "column ")
	if !ok {
		return Place{}, message, false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return Place{}, message, false
	}
	if p.Column, err = strconv.Unquote(quoted); err != nil {
		return Place{}, message, false
	}
	at, fault, ok := strings.Cut(rest[len(quoted):], " of its chunk: ")
	if n, err := fmt.Sscanf(at, ": page %d at byte %d", &p.Page, &p.Offset); !ok || n != 2 || err != nil {
		return Place{}, message, false
	}
	return p, fault, true
}

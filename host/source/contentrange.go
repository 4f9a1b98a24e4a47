package source

import (
	"strconv"
	"strings"
)

// contentRange is the value of the header Content-Range: bytes FIRST-LAST/TOTAL, or bytes */TOTAL.
type contentRange struct {
	first, last int64 // -1 where the header names no range
	total       int64 // -1 where the header says *
}

// parseContentRange reads a header (RFC 9110, 14.4) and reports whether the header is complete and valid.
func parseContentRange(header string) (r contentRange, ok bool) {
	unit, rest, found := strings.Cut(header, " ")
	if !found || !strings.EqualFold(unit, "bytes") {
		return r, false
	}
	span, total, found := strings.Cut(rest, "/")
	if !found {
		return r, false
	}
	r = contentRange{first: -1, last: -1, total: -1}
	if total != "*" {
		if r.total, ok = parseByteNumber(total); !ok {
			return r, false
		}
	}
	if span == "*" {
		return r, r.total >= 0
	}
	first, last, found := strings.Cut(span, "-")
	if !found {
		return r, false
	}
	if r.first, ok = parseByteNumber(first); !ok {
		return r, false
	}
	if r.last, ok = parseByteNumber(last); !ok {
		return r, false
	}
	return r, r.first <= r.last && (r.total < 0 || r.last < r.total)
}

// parseByteNumber reads digits and nothing else.
func parseByteNumber(s string) (n int64, ok bool) {
	if s == "" || len(s) > 19 {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

package telemetry

import (
	"fmt"
	"strconv"
	"strings"
)

// field is where a tracepoint's record has a value.
type field struct{ offset, size int }

// maxRecord bounds an offset: a tracepoint's record fits a page.
const maxRecord = 4096

// parseFormat reads a tracepoint's format file: lines as
//
//	field:int ctrl_id;	offset:40;	size:4;	signed:1;
//
// Arrays are among the fields, with their whole size.
func parseFormat(text string) (map[string]field, error) {
	fields := map[string]field{}
	for line := range strings.Lines(text) {
		declaration, rest, ok := strings.Cut(strings.TrimSpace(line), ";")
		declaration, isField := strings.CutPrefix(declaration, "field:")
		if !ok || !isField {
			continue
		}
		name := declaration[strings.LastIndexAny(declaration, " *")+1:]
		name, _, _ = strings.Cut(name, "[")
		var f field
		var err error
		for part := range strings.SplitSeq(rest, ";") {
			key, value, _ := strings.Cut(strings.TrimSpace(part), ":")
			switch key {
			case "offset":
				f.offset, err = parseBounded(value)
			case "size":
				f.size, err = parseBounded(value)
			}
			if err != nil {
				return nil, fmt.Errorf("field %s: %s %q: %w", name, key, value, err)
			}
		}
		if name == "" || f.size == 0 || f.offset+f.size > maxRecord {
			return nil, fmt.Errorf("field %q: %d bytes at %d cannot be", name, f.size, f.offset)
		}
		fields[name] = f
	}
	return fields, nil
}

// parseBounded parses a number from 0 to maxRecord.
func parseBounded(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && (n < 0 || n > maxRecord) {
		err = fmt.Errorf("want 0 to %d", maxRecord)
	}
	return n, err
}

// selectFields returns the named fields, which must be whole numbers of 1, 2, 4 or 8 bytes, aligned.
func selectFields(fields map[string]field, names ...string) ([]field, error) {
	var out []field
	for _, name := range names {
		f, ok := fields[name]
		if !ok {
			return nil, fmt.Errorf("no field %s", name)
		}
		if f.size > 8 || f.size&(f.size-1) != 0 || f.offset%f.size != 0 {
			return nil, fmt.Errorf("field %s of %d bytes at %d is not a number", name, f.size, f.offset)
		}
		out = append(out, f)
	}
	return out, nil
}

package power

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrReadings says that a file of readings does not parse, or does not cover a run.
var ErrReadings = errors.New("power readings")

// errShort says that readings do not cover a time.
var errShort = fmt.Errorf("%w do not cover the time", ErrReadings)

// reading is the power that the machine drew at a time.
type reading struct {
	At    time.Time
	Watts float64
}

// readings are in the order of their times. A reading holds until the next one.
type readings []reading

// Bounds of a file of readings.
const (
	maxReadingBytes = 64 << 20
	maxWatts        = 1e7
)

// readReadings reads a file of readings. Errors wrap ErrReadings, or are of the file.
func readReadings(path string) (_ readings, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("power: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(io.LimitReader(f, maxReadingBytes+1))
	if err != nil {
		return nil, fmt.Errorf("power: %w", err)
	}
	r, err := parseReadings(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// parseReadings reads lines of "time,watts", with or without the header "time,watts". A time is Unix seconds, or
// RFC 3339. Times ascend. A last line without its end is one that is being written, and is left out.
func parseReadings(b []byte) (readings, error) {
	if len(b) > maxReadingBytes {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrReadings, maxReadingBytes)
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	reader := csv.NewReader(bytes.NewReader(b))
	reader.FieldsPerRecord, reader.TrimLeadingSpace, reader.ReuseRecord, reader.Comment = 2, true, true, '#'
	var list readings
	for first := true; ; first = false {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w: want lines of time,watts", ErrReadings, err)
		}
		line, _ := reader.FieldPos(0)
		if first && strings.EqualFold(strings.TrimSpace(fields[0]), "time") {
			continue
		}
		at, err := parseTime(strings.TrimSpace(fields[0]))
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrReadings, line, err)
		}
		watts, err := strconv.ParseFloat(strings.TrimSpace(fields[1]), 64)
		if err != nil || !(watts >= 0 && watts <= maxWatts) {
			return nil, fmt.Errorf("%w: line %d: %.40q is not a number of watts from 0 to %.0f", ErrReadings, line,
				fields[1], maxWatts)
		}
		if n := len(list); n > 0 && !at.After(list[n-1].At) {
			return nil, fmt.Errorf("%w: line %d: its time is not after that of the line before", ErrReadings, line)
		}
		list = append(list, reading{at, watts})
	}
	return list, nil
}

// parseTime reads Unix seconds, with a fraction or without, or RFC 3339.
func parseTime(s string) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds >= 0 && seconds < 1e11 {
		whole, part := math.Modf(seconds)
		return time.Unix(int64(whole), int64(part*1e9)), nil
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return at, fmt.Errorf("the time %.40q is neither Unix seconds nor RFC 3339", s)
	}
	return at, nil
}

// joules returns the energy from begin to end. The readings must cover that time: one at or before begin, and a last
// one that is at most the longest time between two readings before end. Errors wrap ErrReadings.
func (r readings) joules(begin, end time.Time) (float64, error) {
	if len(r) == 0 {
		return 0, fmt.Errorf("%w: there is no reading", errShort)
	}
	longest := time.Duration(0)
	for i := 1; i < len(r); i++ {
		longest = max(longest, r[i].At.Sub(r[i-1].At))
	}
	last := r[len(r)-1].At
	switch {
	case r[0].At.After(begin):
		return 0, fmt.Errorf("%w: it began at %s, and the first reading is of %s: begin to read before the run",
			errShort, begin.Format(time.RFC3339), r[0].At.Format(time.RFC3339))
	case last.Add(longest).Before(end):
		return 0, fmt.Errorf("%w: it ended at %s, and the last reading is of %s: read until the run has ended",
			errShort, end.Format(time.RFC3339), last.Format(time.RFC3339))
	}
	joules := 0.0
	for i := range r {
		from, to := r[i].At, end
		if i+1 < len(r) && r[i+1].At.Before(end) {
			to = r[i+1].At
		}
		if from.Before(begin) {
			from = begin
		}
		if to.After(from) {
			joules += r[i].Watts * to.Sub(from).Seconds()
		}
	}
	return joules, nil
}

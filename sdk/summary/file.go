package summary

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/crc32c"
)

// Format begins every file of a summary, as the value of its member format.
const Format = "millrace.summary/3"

// formatName is Format without the version.
const formatName = "millrace.summary/"

// MaxBytes bounds the file of a summary.
const MaxBytes = 512 << 20

// ErrDamaged says that bytes are no summary.
var ErrDamaged = errors.New("summary: damaged")

// ErrVersion says that a summary has a version that this build does not read.
var ErrVersion = errors.New("summary: version")

// Digest is a SHA-256, in text as lower-case hex.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(d) || len(b)%2 != 0 {
		return fmt.Errorf("a digest of %d characters, want %d", len(b), 2*len(d))
	}
	_, err := hex.Decode(d[:], b)
	return err
}

// document is the file without its last member.
type document struct {
	Format     string      `json:"format"`
	Manifest   Digest      `json:"manifest_sha256"`
	Rows       int64       `json:"rows"`
	Columns    []Column    `json:"columns"`
	Partitions []Partition `json:"partitions"`
}

// document and the checksum, as they are parsed.
type checkedDocument struct {
	document
	CRC string `json:"crc32c"`
}

// checksumBytes is the length of the last member, the brace and the newline behind the rest of the file.
const checksumBytes = len(`,"crc32c":"01234567"}` + "\n")

// Encode returns the file of the summary. The error wraps ErrDamaged if the summary breaks a rule.
func (s *Summary) Encode() ([]byte, error) {
	if err := s.checkRules(); err != nil {
		return nil, err
	}
	return s.encodeUnchecked()
}

func (s *Summary) encodeUnchecked() ([]byte, error) {
	d := document{Format: Format, Manifest: s.Manifest, Rows: s.Rows, Columns: s.Columns, Partitions: s.Partitions}
	if d.Columns == nil {
		d.Columns = []Column{}
	}
	if d.Partitions == nil {
		d.Partitions = []Partition{}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte("}\n"))
	if len(text)+checksumBytes > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d: summarize fewer columns, or leave the partitions out",
			ErrDamaged, len(text), MaxBytes)
	}
	return fmt.Appendf(text, ",\"crc32c\":\"%08x\"}\n", crc32c.Checksum(text)), nil
}

// Read reads a file that Encode returned. It refuses every other form of the same content.
func Read(b []byte) (*Summary, error) {
	if len(b) > MaxBytes || len(b) < checksumBytes {
		return nil, fmt.Errorf("%w: %d bytes, want %d to %d", ErrDamaged, len(b), checksumBytes, MaxBytes)
	}
	if err := checkFormat(b); err != nil {
		return nil, err
	}
	text, end := b[:len(b)-checksumBytes], string(b[len(b)-checksumBytes:])
	if want := fmt.Sprintf(",\"crc32c\":\"%08x\"}\n", crc32c.Checksum(text)); end != want {
		return nil, fmt.Errorf("%w: it ends with %q and its bytes sum up to %q: it was changed or cut off", ErrDamaged,
			end, want)
	}
	var d checkedDocument
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	s := &Summary{Manifest: d.Manifest, Rows: d.Rows, Columns: d.Columns, Partitions: d.Partitions}
	if err := s.checkRules(); err != nil {
		return nil, err
	}
	canonical, err := s.encodeUnchecked()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(b, canonical) {
		return nil, fmt.Errorf("%w: it is not in canonical form", ErrDamaged)
	}
	return s, nil
}

// checkFormat checks the first member.
func checkFormat(b []byte) error {
	rest, ok := bytes.CutPrefix(b, []byte(`{"format":"`+formatName))
	version, _, closed := bytes.Cut(rest, []byte(`"`))
	if !ok || !closed {
		return fmt.Errorf("%w: it does not begin as a summary", ErrDamaged)
	}
	if n, err := strconv.ParseUint(string(version), 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%w: a version of %d characters", ErrDamaged, len(version))
	}
	if formatName+string(version) != Format {
		return fmt.Errorf("%w %s: this build reads %s; versions 1 and 2 are of builds that read units, decimals and "+
			"NaN differently: summarize the data set again", ErrVersion, version, Format)
	}
	return nil
}

// LooksLikeSummary reports whether bytes, of which the first 64 suffice, begin as the file of a summary does.
func LooksLikeSummary(first []byte) bool {
	return bytes.HasPrefix(first, []byte(`{"format":"`+formatName))
}

// Load reads a summary from a file, and returns the SHA-256 of the file, too.
func Load(path string) (_ *Summary, _ Digest, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Digest{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, Digest{}, err
	}
	s, err := Read(b)
	if err != nil {
		return nil, Digest{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, sha256.Sum256(b), nil
}

// checkRules refuses a summary that breaks a rule.
func (s *Summary) checkRules() error {
	damaged := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
	}
	switch {
	case s.Rows < 0:
		return damaged("%d rows", s.Rows)
	case len(s.Columns) > MaxColumns:
		return damaged("%d columns, want at most %d", len(s.Columns), MaxColumns)
	case len(s.Partitions) > 0 && len(s.Columns) > MaxCells/len(s.Partitions):
		return damaged("%d columns of %d partitions, want at most %d statistics", len(s.Columns), len(s.Partitions),
			MaxCells)
	}
	names := make(map[string]bool, len(s.Columns))
	for i := range s.Columns {
		c := &s.Columns[i]
		switch {
		case !isName(c.Name) || !isName(c.Type):
			return damaged("column %d has no name, a long name, or one that is not UTF-8", i)
		case names[c.Name]:
			return damaged("two columns have the name %q", c.Name)
		case c.Kind != Integers && c.Kind != Reals && c.Kind != Hashes && c.Kind != Lengths:
			return damaged("column %q has the kind %q", c.Name, c.Kind)
		}
		names[c.Name] = true
		if c.Targets != nil && (c.Kind != Integers || c.List) {
			return damaged("column %q has targets, and is not a column of integers", c.Name)
		}
		if err := c.checkStatistics(c, s.Rows); err != nil {
			return damaged("column %q: %v", c.Name, err)
		}
	}
	var rows int64
	listed := make(map[string]bool, len(s.Partitions))
	for i := range s.Partitions {
		p := &s.Partitions[i]
		switch {
		case !isName(p.Name):
			return damaged("partition %d has no name, a long name, or one that is not UTF-8", i)
		case listed[p.Name]:
			return damaged("partition %q is listed twice", p.Name)
		case p.Rows < 0 || p.Rows > s.Rows-rows:
			return damaged("partition %q has %d rows", p.Name, p.Rows)
		case len(p.Columns) != len(s.Columns):
			return damaged("partition %q has %d columns, the data set %d", p.Name, len(p.Columns), len(s.Columns))
		}
		listed[p.Name], rows = true, rows+p.Rows
		for j := range p.Columns {
			if err := p.Columns[j].checkStatistics(&s.Columns[j], p.Rows); err != nil {
				return damaged("partition %q, column %q: %v", p.Name, s.Columns[j].Name, err)
			}
		}
	}
	if len(s.Partitions) > 0 && rows != s.Rows {
		return damaged("the partitions have %d rows, the data set %d", rows, s.Rows)
	}
	return nil
}

func isName(name string) bool {
	return name != "" && len(name) <= MaxName && utf8.ValidString(name)
}

// checkStatistics refuses statistics of a column that break a rule.
func (s *Statistics) checkStatistics(c *Column, rows int64) error {
	special := []int64{s.NaNs, s.PositiveInfinite, s.NegativeInfinite}
	finite := s.Values
	for _, n := range special {
		if n < 0 || n > finite {
			return fmt.Errorf("%d values that are not finite, of %d", n, s.Values)
		}
		finite -= n
	}
	ordered := (c.Kind == Integers || c.Kind == Reals) && finite > 0
	switch {
	case s.Rows != rows:
		return fmt.Errorf("%d rows, want %d", s.Rows, rows)
	case s.NullRows < 0 || s.NullRows > s.Rows || s.Values < 0:
		return fmt.Errorf("%d null rows and %d values of %d rows", s.NullRows, s.Values, s.Rows)
	case !c.List && s.Values != s.Rows-s.NullRows:
		return fmt.Errorf("%d values of %d rows, %d of them null", s.Values, s.Rows, s.NullRows)
	case (s.ListLengths != nil) != c.List:
		return errors.New("lengths are for lists, and every list has them")
	case c.List && (s.ListLengths.Least < 0 || s.ListLengths.Greatest < s.ListLengths.Least || s.ListLengths.Mean < 0):
		return fmt.Errorf("lengths of %d to %d", s.ListLengths.Least, s.ListLengths.Greatest)
	case (s.Least != nil) != ordered || (s.Greatest != nil) != ordered || (s.Mean != nil) != ordered:
		return errors.New("the least, the greatest and the mean belong to finite numbers, and each column of them has them")
	case (s.Deviation != nil) != (ordered && finite > 1):
		return errors.New("a deviation belongs to two or more finite numbers")
	case (s.Quantiles != nil) != ordered || ordered && len(s.Quantiles) != Quantiles:
		return fmt.Errorf("%d quantiles", len(s.Quantiles))
	case s.Distinct < 0 || s.MissedCount < 0 || s.MissedCount > finite || s.Exact && s.MissedCount > 0:
		return fmt.Errorf("%d distinct values, counts that miss %d", s.Distinct, s.MissedCount)
	case len(s.TopValues) > MaxTopValues:
		return fmt.Errorf("%d frequent values, want at most %d", len(s.TopValues), MaxTopValues)
	case s.Deviation != nil && *s.Deviation < 0:
		return fmt.Errorf("the deviation %v", *s.Deviation)
	}
	return s.checkValues(c, finite)
}

// checkValues refuses values of another kind than the column's, and orders that are wrong.
func (s *Statistics) checkValues(c *Column, finite int64) error {
	fits := func(v Value) bool { return v.Integer == (c.Kind != Reals) && (!v.Large || c.Kind == Integers) }
	if s.Least != nil && (!fits(*s.Least) || !fits(*s.Greatest) || s.Greatest.Less(*s.Least)) {
		return fmt.Errorf("values from %v to %v", s.Least, s.Greatest)
	}
	for i, q := range s.Quantiles {
		if !fits(q) || i > 0 && q.Less(s.Quantiles[i-1]) || q.Less(*s.Least) || s.Greatest.Less(q) {
			return fmt.Errorf("quantile %d is %v", i, q)
		}
	}
	for i, t := range s.TopValues {
		if !fits(t.Value) || t.Count < 1 || t.Count > finite {
			return fmt.Errorf("frequent value %v, %d times of %d", t.Value, t.Count, finite)
		}
		finite -= t.Count
		if i > 0 && !s.TopValues[i-1].before(t) {
			return fmt.Errorf("frequent value %v is not in its place", t.Value)
		}
	}
	return nil
}

// Less reports whether v is below w. Both are integers or both real numbers.
func (v Value) Less(w Value) bool {
	switch {
	case v.Large != w.Large:
		return w.Large
	case v.Integer && w.Integer:
		return v.Int < w.Int // also correct if both are large
	}
	return v.Real() < w.Real()
}

// before reports whether t stands before u in the list of frequent values.
func (t TopValue) before(u TopValue) bool {
	return t.Count > u.Count || t.Count == u.Count && t.Value.Less(u.Value)
}

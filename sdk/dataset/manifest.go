package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// ErrManifest says that a manifest breaks a rule.
var ErrManifest = errors.New("dataset: manifest")

// MaxPartitionName is the most bytes a partition's name may have.
const MaxPartitionName = 1 << 12

// Digest is a SHA-256. In JSON it is lower-case hex.
type Digest [sha256.Size]byte

// String returns lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes lower-case hex.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 lower-case hex digits.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) != 2*len(d) {
		return fmt.Errorf("a digest has %d hex digits, want %d", len(b), 2*len(d))
	}
	var v Digest
	if _, err := hex.Decode(v[:], b); err != nil {
		return fmt.Errorf("digest: %w", err)
	}
	if v.String() != string(b) {
		return errors.New("a digest is written in lower-case hex")
	}
	*d = v
	return nil
}

// Partition is one file of a data set, whole on at least one drive.
type Partition struct {
	Name      string  `json:"name"`           // unique, UTF-8
	Bytes     int64   `json:"bytes"`          // length of the file
	Rows      int64   `json:"rows"`           // may be 0
	RowGroups []int64 `json:"row_groups"`     // rows of each row group; their sum is Rows
	Content   Digest  `json:"content_sha256"` // The footer and samples of the bytes; see partition.DigestRuns.
}

// Manifest lists the partitions of a data set in its order: the order in which files were given, or else that of
// [CompareNames]. The order is a part of the digest. NewManifest and ReadManifest make a manifest; the
// caller must not change it afterwards.
type Manifest struct {
	Partitions []Partition
	rows       int64
	index      map[string]int // index of each partition by its name
}

// manifestJSON is the manifest's canonical form: fields in this order, no spaces, strings as encoding/json writes them
// without HTML escaping, one newline at the end.
type manifestJSON struct {
	Version    int         `json:"version"`
	Partitions []Partition `json:"partitions"`
}

// ManifestVersion is the version of the manifests that this build writes and reads. Version 1 sorted partitions by the
// bytes of their names.
const ManifestVersion = 2

// NewManifest makes a manifest of a copy of the partitions, in their order, and checks it. The error wraps ErrManifest
// and names the partition.
func NewManifest(partitions []Partition) (*Manifest, error) {
	m := &Manifest{Partitions: make([]Partition, len(partitions))}
	for i, p := range partitions {
		p.RowGroups = append([]int64{}, p.RowGroups...)
		m.Partitions[i] = p
	}
	if err := m.validate(); err != nil {
		return nil, err
	}
	return m, nil
}

// ReadManifest parses what MarshalJSON wrote. It refuses a manifest that is not in canonical form, so that a manifest's
// digest is the digest of its bytes.
func ReadManifest(b []byte) (*Manifest, error) {
	var document manifestJSON
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	if document.Version != ManifestVersion {
		return nil, fmt.Errorf("%w: version %d, this build reads %d: describe the data set again", ErrManifest,
			document.Version, ManifestVersion)
	}
	m := &Manifest{Partitions: document.Partitions}
	if err := m.validate(); err != nil {
		return nil, err
	}
	canonical, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(b, canonical) && !bytes.Equal(b, append(canonical, '\n')) {
		return nil, fmt.Errorf("%w: not in canonical form: write it with MarshalJSON", ErrManifest)
	}
	return m, nil
}

// validate refuses a manifest that breaks a rule, and sets rows and index.
func (m *Manifest) validate() error {
	m.rows, m.index = 0, make(map[string]int, len(m.Partitions))
	for i := range m.Partitions {
		p := &m.Partitions[i]
		if err := p.validate(); err != nil {
			return fmt.Errorf("%w: partition %q: %w", ErrManifest, p.Name, err)
		}
		if other, ok := m.index[p.Name]; ok {
			return fmt.Errorf("%w: partition %q: it is number %d and number %d: a data set has each partition once",
				ErrManifest, p.Name, other, i)
		}
		m.index[p.Name] = i
		if p.Rows > math.MaxInt64-m.rows {
			return fmt.Errorf("%w: partition %q: the rows of all partitions pass 2^63", ErrManifest, p.Name)
		}
		m.rows += p.Rows
	}
	return nil
}

// validate refuses a partition that breaks a rule.
func (p *Partition) validate() error {
	switch {
	case p.Name == "":
		return errors.New("it has no name")
	case len(p.Name) > MaxPartitionName:
		return fmt.Errorf("its name has %d bytes, at most %d", len(p.Name), MaxPartitionName)
	case !utf8.ValidString(p.Name) || strings.ContainsRune(p.Name, 0):
		return errors.New("its name is not UTF-8 without NUL")
	case p.Bytes < 0 || p.Rows < 0:
		return fmt.Errorf("%d bytes and %d rows", p.Bytes, p.Rows)
	}
	var sum int64
	for g, n := range p.RowGroups {
		if n < 0 || n > p.Rows-sum {
			return fmt.Errorf("row group %d of %d rows does not fit %d rows", g, n, p.Rows)
		}
		sum += n
	}
	if sum != p.Rows {
		return fmt.Errorf("its row groups have %d rows, the partition %d", sum, p.Rows)
	}
	return nil
}

// Rows returns the rows of all partitions.
func (m *Manifest) Rows() int64 { return m.rows }

// Find returns the index of the named partition, or -1.
func (m *Manifest) Find(name string) int {
	if i, ok := m.index[name]; ok {
		return i
	}
	return -1
}

// MarshalJSON returns the canonical form, without a newline at its end.
func (m *Manifest) MarshalJSON() ([]byte, error) {
	document := manifestJSON{Version: ManifestVersion, Partitions: m.Partitions}
	if document.Partitions == nil {
		document.Partitions = []Partition{}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON is ReadManifest for a manifest inside another document, whose white space encoding/json has removed.
func (m *Manifest) UnmarshalJSON(b []byte) error {
	read, err := ReadManifest(b)
	if err != nil {
		return err
	}
	*m = *read
	return nil
}

// Digest returns the SHA-256 of the canonical form.
func (m *Manifest) Digest() (Digest, error) {
	b, err := m.MarshalJSON()
	if err != nil {
		return Digest{}, err
	}
	return sha256.Sum256(b), nil
}

package fleet

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

var (
	// ErrSelect says that the chosen partitions do not make a data set.
	ErrSelect = errors.New("select partitions")
	// ErrNotYet says that the partitions are not known yet: the same request may succeed in a moment.
	ErrNotYet = errors.New("not every node has said what it holds")
)

// DriveID is a drive of a node.
type DriveID struct{ Node, Drive string }

// Dataset is the partitions that the patterns of a job name, of which live nodes hold each.
type Dataset struct {
	Manifest  *dataset.Manifest
	Schema    []byte // digest of the partitions' schema; of the digests of their schemas, if they have several
	Malformed uint32
	Columns   []columntypes.Column // Columns are those of all partitions, unified.
	Several   bool                 // the partitions have several schemas
	// MeanLength is the mean number of elements a row of each list column, over the nodes.
	MeanLength map[string]float64
	// Holders are the drives that hold each partition of the manifest, by node and drive. A partition without a holder
	// lies at a URL that an agent announces.
	Holders [][]DriveID
}

// maxPatterns and maxPattern bound the patterns that one request matches against every name.
const (
	maxPatterns = 1 << 10
	maxPattern  = 1 << 10
)

// CheckPatterns returns an error if path.Match does not accept a pattern, if a pattern is too long, or if there are too
// many.
func CheckPatterns(patterns []string) error {
	if len(patterns) > maxPatterns {
		return fmt.Errorf("%w: %d patterns, at most %d", ErrSelect, len(patterns), maxPatterns)
	}
	for _, p := range patterns {
		if len(p) > maxPattern {
			return fmt.Errorf("%w: a pattern of %d bytes", ErrSelect, len(p))
		}
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("%w: pattern %q: %w", ErrSelect, p, err)
		}
	}
	return nil
}

// wanted reports whether a name matches one of the patterns and none of exclude. Without patterns every name matches.
func wanted(name string, patterns, exclude []string) bool {
	return (len(patterns) == 0 || matches(name, patterns)) && !matches(name, exclude)
}

func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil || p == name
	})
}

// sortByPattern sorts partitions by the first pattern that each matches, then in natural order.
func sortByPattern(list []dataset.Partition, patterns []string) {
	places := make(map[string]int, len(list))
	for _, p := range list {
		places[p.Name] = slices.IndexFunc(patterns, func(pattern string) bool {
			return matches(p.Name, []string{pattern})
		})
	}
	slices.SortFunc(list, func(a, b dataset.Partition) int {
		return cmp.Or(cmp.Compare(places[a.Name], places[b.Name]), dataset.CompareNames(a.Name, b.Name))
	})
}

// Select returns the data set of the partitions that match, in the order of the patterns; the partitions of one pattern
// come in natural order (dataset.CompareNames). A live node must hold each of them, copies must be the same
// file, and all must be of one format. A partition that only a dead node holds is an error, unless the node is drained.
// Errors wrap ErrSelect, or ErrNotYet, and name partitions and nodes.
func (f *Fleet) Select(patterns, exclude []string) (*Dataset, error) {
	return f.SelectOrOwn(patterns, exclude, nil)
}

// SelectOrOwn does what Select does if a live node holds a partition that matches, or if own is nil. Otherwise it
// chooses among the files of a submitter's machine that own describes.
func (f *Fleet) SelectOrOwn(patterns, exclude []string, own *apiv1.OwnFiles) (*Dataset, error) {
	s, err := f.selectAll(patterns, exclude, nil, own)
	if err == nil && s == nil {
		switch {
		case own != nil:
			err = fmt.Errorf("%w: no live node holds one that matches %q, and of %s of the submitter's machine none does: "+
				"name them in the partitions of the job", ErrSelect, patterns, quantity.Of(len(own.Partitions), "file"))
		case len(patterns) == 0 && len(exclude) == 0:
			err = fmt.Errorf("%w: no live node holds any: see millrace nodes list, and put some on them with "+
				"millrace dataset place", ErrSelect)
		case len(exclude) == 0:
			err = fmt.Errorf("%w: no live node holds one that matches %q (* does not cross /)", ErrSelect, patterns)
		default:
			err = fmt.Errorf("%w: no live node holds one that matches %q and none of %q (* does not cross /)",
				ErrSelect, patterns, exclude)
		}
	}
	return s, err
}

// SelectNew does what Select does, without the partitions for which had reports true. It returns nil if no partition
// remains.
func (f *Fleet) SelectNew(patterns, exclude []string, had func(name string) bool) (*Dataset, error) {
	return f.selectAll(patterns, exclude, had, nil)
}

func (f *Fleet) selectAll(
	patterns, exclude []string, had func(name string) bool, own *apiv1.OwnFiles,
) (*Dataset, error) {
	if err := errors.Join(CheckPatterns(patterns), CheckPatterns(exclude)); err != nil {
		return nil, err
	}
	var (
		found = map[string]*apiv1.Partition{}
		first = map[string]string{} // node where it was found first
		list  []dataset.Partition
	)
	for _, name := range f.names() {
		n := f.nodes[name]
		if !n.alive {
			continue
		}
		own := servesOneRank(n.status)
		if !n.whole && !own {
			return nil, fmt.Errorf("%w: %s", ErrNotYet, name)
		}
		for _, d := range n.status.Drives {
			if d.State == "opening" && had == nil && !own {
				return nil, fmt.Errorf("%w: node %s is opening its drive %s", ErrNotYet, name, d.Name)
			}
		}
		for _, p := range n.status.Partitions {
			if !wanted(p.Name, patterns, exclude) || had != nil && had(p.Name) {
				continue
			}
			if other, ok := found[p.Name]; ok {
				if !same(p, other) {
					return nil, fmt.Errorf("%w: %s on node %s and on node %s are different files", ErrSelect, p.Name,
						first[p.Name], name)
				}
				continue
			}
			found[p.Name], first[p.Name] = p, name
			e, err := entry(p)
			if err != nil {
				return nil, fmt.Errorf("%w: node %s: %w", ErrSelect, name, err)
			}
			list = append(list, e)
		}
	}
	if len(list) == 0 && own != nil {
		return f.selectOwnFiles(patterns, exclude, own)
	}
	if had == nil { // SelectNew takes partitions of dead nodes when they appear
		if err := f.missing(found, patterns, exclude); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	sortByPattern(list, patterns)
	m, err := dataset.NewManifest(list)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSelect, err)
	}
	s := &Dataset{Manifest: m}
	if err := f.unifySchemas(s, found); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSelect, err)
	}
	s.Holders = f.Holders(m)
	for i, h := range s.Holders {
		if len(h) == 0 && !f.GivenByURL(m.Partitions[i]) {
			return nil, fmt.Errorf("%w: node %s lists %s, and none of its drives holds it", ErrSelect,
				first[m.Partitions[i].Name], m.Partitions[i].Name)
		}
	}
	return s, nil
}

// missing returns an error for partitions that only a dead node holds.
func (f *Fleet) missing(found map[string]*apiv1.Partition, patterns, exclude []string) error {
	for _, name := range f.names() {
		n := f.nodes[name]
		if n.alive || n.drain || n.refused != "" {
			continue
		}
		if n.restored && !servesOneRank(n.status) {
			return fmt.Errorf("%w: node %s has not been heard of since this leader began, and nobody knows what it "+
				"holds: start it, or drain it if it is gone for good", ErrNotYet, name)
		}
		for _, p := range n.status.Partitions {
			if found[p.Name] == nil && wanted(p.Name, patterns, exclude) {
				return fmt.Errorf("%w: only node %s holds %s, and it is dead: start it, exclude the partition, or "+
					"drain the node if it is gone for good", ErrSelect, name, p.Name)
			}
		}
	}
	return nil
}

// Word returns a name of a partition with exactly this content, so that a replaced file is not mistaken for the file
// with which a job was submitted.
func Word(name string, digest []byte) string {
	return name + "@" + hex.EncodeToString(digest[:min(len(digest), 8)])
}

// Lost returns the reason why no drive makes mini-batches of a partition, which the caller names by its Word.
func (f *Fleet) Lost(word string) string {
	partition := word
	if i := strings.LastIndexByte(word, '@'); i >= 0 {
		partition = word[:i]
	}
	changed := ""
	for _, name := range f.names() {
		n := f.nodes[name]
		switch have := n.partition[partition]; {
		case !n.alive || have == nil:
		case Word(partition, have.ContentSha256) == word && n.sources().urls[partition] != nil:
			return fmt.Sprintf("partition %s: only workers without data can make it, from %s, and none takes work of "+
				"the job", partition, n.sources().urls[partition].Url)
		case Word(partition, have.ContentSha256) == word:
			return fmt.Sprintf("partition %s: node %s holds it and does not take work on it", partition, name)
		default:
			changed = name
		}
	}
	if changed != "" {
		return fmt.Sprintf("partition %s: the file of this name on node %s is not the one that the job was submitted "+
			"with", partition, changed)
	}
	return fmt.Sprintf("partition %s: no live node holds it", partition)
}

// Words lists the partitions that each drive of a node holds, as Words.
func (f *Fleet) Words(name string) map[string][]string {
	n := f.nodes[name]
	if n == nil {
		return nil
	}
	all := make(map[string][]string, len(n.status.Drives))
	for _, d := range n.status.Drives {
		words := make([]string, 0, len(d.Partitions))
		for _, p := range d.Partitions {
			if have := n.partition[p]; have != nil {
				words = append(words, Word(p, have.ContentSha256))
			}
		}
		all[d.Name] = words
	}
	return all
}

// Holds reports whether a node has a partition of the manifest, as the manifest says.
func (f *Fleet) Holds(name string, m *dataset.Manifest) bool {
	n := f.nodes[name]
	if n == nil {
		return false
	}
	for p, have := range n.partition {
		if i := m.Find(p); i >= 0 && bytes.Equal(have.ContentSha256, m.Partitions[i].Content[:]) {
			return true
		}
	}
	return false
}

// Holders returns, for each partition of a manifest, the drives of live nodes that hold it as the manifest says.
func (f *Fleet) Holders(m *dataset.Manifest) [][]DriveID {
	holders := make([][]DriveID, len(m.Partitions))
	for _, name := range f.names() {
		n := f.nodes[name]
		if !n.alive {
			continue
		}
		for _, d := range n.status.Drives {
			for _, p := range d.Partitions {
				i := m.Find(p)
				if i < 0 {
					continue
				}
				have := n.partition[p]
				if have == nil {
					continue
				}
				e, err := entry(have)
				if err != nil || e.Bytes != m.Partitions[i].Bytes || e.Rows != m.Partitions[i].Rows ||
					e.Content != m.Partitions[i].Content {
					continue
				}
				holders[i] = append(holders[i], DriveID{name, d.Name})
			}
		}
	}
	return holders
}

// columns finds a schema on any live node.
func (f *Fleet) columns(digest []byte) ([]columntypes.Column, uint32, error) {
	for _, name := range f.names() {
		n := f.nodes[name]
		if !n.alive {
			continue
		}
		for _, s := range n.status.Schemas {
			if bytes.Equal(s.Digest, digest) {
				c, err := api.DecodeColumns(s.Columns)
				if err != nil {
					return nil, 0, fmt.Errorf("node %s: schema %s: %w", name, short(digest), err)
				}
				return c, s.Malformed, nil
			}
		}
	}
	return nil, 0, fmt.Errorf("no node says what the columns of schema %s are", short(digest))
}

// meanLength returns the mean of the lengths that live nodes report for their partitions of a schema.
func (f *Fleet) meanLength(digest []byte) map[string]float64 {
	sum, nodes := map[string]float64{}, 0
	for _, name := range f.names() {
		for _, s := range f.nodes[name].status.Schemas {
			if f.nodes[name].alive && bytes.Equal(s.Digest, digest) {
				nodes++
				for column, n := range s.MeanLength {
					sum[column] += n
				}
			}
		}
	}
	for column := range sum {
		sum[column] /= float64(nodes)
	}
	return sum
}

func same(a, b *apiv1.Partition) bool {
	return a.Bytes == b.Bytes && a.Rows == b.Rows && bytes.Equal(a.ContentSha256, b.ContentSha256) &&
		bytes.Equal(a.Schema, b.Schema)
}

// entry returns a partition in the form of a manifest.
func entry(p *apiv1.Partition) (dataset.Partition, error) {
	e := dataset.Partition{Name: p.Name, Bytes: p.Bytes, Rows: p.Rows, RowGroups: p.RowGroups}
	if len(p.ContentSha256) != len(e.Content) {
		return e, fmt.Errorf("%s: a SHA-256 of %d bytes", p.Name, len(p.ContentSha256))
	}
	copy(e.Content[:], p.ContentSha256)
	return e, nil
}

// short returns the beginning of a digest, for messages.
func short(d []byte) string { return hex.EncodeToString(d[:min(len(d), 6)]) }

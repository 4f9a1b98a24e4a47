package fleet

import (
	"bytes"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
)

// sourceIndex finds the partitions that one node holds, or whose URLs its agent announces. The index is made at its
// first use after the node's inventory has changed.
type sourceIndex struct {
	drives map[string][]string               // by partition: the drives that hold it
	urls   map[string]*apiv1.PartitionSource // by partition
}

func (n *node) sources() *sourceIndex {
	if n.sourceIndex == nil {
		x := &sourceIndex{drives: map[string][]string{}, urls: map[string]*apiv1.PartitionSource{}}
		for _, d := range n.status.Drives {
			for _, p := range d.Partitions {
				x.drives[p] = append(x.drives[p], d.Name)
			}
		}
		for _, s := range n.status.Sources {
			x.urls[s.Partition] = s
		}
		n.sourceIndex = x
	}
	return n.sourceIndex
}

// Source says where a partition can be read now: on every drive of a live node that holds the partition of the
// manifest's entry, and at the URL that a live agent announces. A source without copies and URL cannot be read
// anywhere.
func (f *Fleet) Source(p dataset.Partition) *apiv1.PartitionSource {
	return f.Locate([]dataset.Partition{p})[0]
}

// Locate returns the sources of several partitions.
func (f *Fleet) Locate(partitions []dataset.Partition) []*apiv1.PartitionSource {
	sources := make([]*apiv1.PartitionSource, len(partitions))
	for i, p := range partitions {
		sources[i] = &apiv1.PartitionSource{Partition: p.Name}
	}
	for _, name := range f.names() {
		n := f.nodes[name]
		if !n.alive {
			continue
		}
		index := n.sources()
		for i, p := range partitions {
			if !n.hasAs(p) {
				continue
			}
			for _, drive := range index.drives[p.Name] {
				sources[i].Copies = append(sources[i].Copies, &apiv1.HeldCopy{Node: name, Urls: n.status.Urls,
					Drive: drive})
			}
			if u := index.urls[p.Name]; u != nil && sources[i].Url == "" {
				sources[i].Url, sources[i].Identity = u.Url, u.Identity
			}
		}
	}
	return sources
}

// hasAs reports whether a node announces a partition as a manifest's entry says.
func (n *node) hasAs(p dataset.Partition) bool {
	have := n.partition[p.Name]
	return have != nil && have.Bytes == p.Bytes && have.Rows == p.Rows && bytes.Equal(have.FooterSha256, p.Footer[:])
}

// GivenByURL reports whether a live agent announces a URL of the partition.
func (f *Fleet) GivenByURL(p dataset.Partition) bool {
	for _, n := range f.nodes {
		if n.alive && n.hasAs(p) && n.sources().urls[p.Name] != nil {
			return true
		}
	}
	return false
}

// StoreWords lists the partitions whose URLs a node's agent announces, as Words.
func (f *Fleet) StoreWords(name string) []string {
	n := f.nodes[name]
	if n == nil {
		return nil
	}
	var words []string
	for _, s := range n.status.Sources {
		if have := n.partition[s.Partition]; have != nil {
			words = append(words, Word(s.Partition, have.FooterSha256))
		}
	}
	return words
}

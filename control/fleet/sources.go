package fleet

import (
	"bytes"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
)

// sourceIndex finds the partitions that one node holds, or whose URLs its agent announces. The index is made at its
// first use after the node's inventory has changed.
type sourceIndex struct {
	drives map[string][]string               // by partition: the drives that hold it; of the regions of a drive one
	urls   map[string]*apiv1.PartitionSource // by partition
}

func (n *node) sources() *sourceIndex {
	if n.sourceIndex == nil {
		x := &sourceIndex{drives: map[string][]string{}, urls: map[string]*apiv1.PartitionSource{}}
		x.addDrives(n.status.Drives)
		for _, s := range n.status.Sources {
			x.urls[s.Partition] = s
		}
		n.sourceIndex = x
	}
	return n.sourceIndex
}

// addDrives adds the drives that hold partitions. Of the regions of a drive, which share a UUID, it adds one: a region
// that is ready, if there is one.
func (x *sourceIndex) addDrives(drives []*apiv1.Drive) {
	regions := map[string]int{} // by UUID
	for _, d := range drives {
		regions[d.Uuid]++
	}
	type copyOn struct{ partition, uuid string }
	listed := map[copyOn]bool{}
	for _, ready := range []bool{true, false} {
		for _, d := range drives {
			if (d.State == "ready") != ready {
				continue
			}
			alone := d.Uuid == "" || regions[d.Uuid] == 1
			for _, p := range d.Partitions {
				if on := (copyOn{p, d.Uuid}); alone || !listed[on] {
					x.drives[p] = append(x.drives[p], d.Name)
					if !alone {
						listed[on] = true
					}
				}
			}
		}
	}
}

// Flash returns a name of the flash of a drive, which the regions of a drive have in common and no other drive of the
// node has.
func (f *Fleet) Flash(at DriveID) string {
	if uuid := f.Drive(at).GetUuid(); uuid != "" {
		return "uuid " + uuid
	}
	return "drive " + at.Drive
}

// Source says where a partition can be read now: on every drive of a live node that holds the partition of the
// manifest's entry, through one of its regions, and at the URL that a live agent announces. A source without copies
// and URL cannot be read anywhere.
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
	return have != nil && have.Bytes == p.Bytes && have.Rows == p.Rows && bytes.Equal(have.ContentSha256, p.Content[:])
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
			words = append(words, Word(s.Partition, have.ContentSha256))
		}
	}
	return words
}

package fleet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// workerAgent returns the status of a machine without drives that has one worker of any reach.
func workerAgent(name string) *apiv1.NodeStatus {
	return &apiv1.NodeStatus{
		Name: name, Incarnation: name + "-1", Urls: []string{"http://" + name}, Protocol: apiv1.Protocol,
		Inventory: []byte(name), Drives: []*apiv1.Drive{{Name: "w", State: "ready", Streams: 2, Reach: apiv1.ReachAny}},
	}
}

func TestWhatAStatusSaysOfReachIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *apiv1.NodeStatus)
		want   string // empty: the node is taken
	}{
		"any":           {func(*apiv1.NodeStatus) {}, ""},
		"held":          {func(s *apiv1.NodeStatus) { s.Drives[0].Reach = apiv1.ReachHeld }, ""},
		"another reach": {func(s *apiv1.NodeStatus) { s.Drives[0].Reach = "all" }, `reach "all": want held or any`},
		"any with holdings": {
			func(s *apiv1.NodeStatus) { s.Drives[0].Partitions = []string{"p"} }, "lists 1 partition: ",
		},
		"one rank": {func(s *apiv1.NodeStatus) { s.Drives[0].Serves = &apiv1.RankName{Job: "j-1", Rank: 3} }, ""},
		"one rank, held": {func(s *apiv1.NodeStatus) {
			s.Drives[0].Reach, s.Drives[0].Serves = "", &apiv1.RankName{Job: "j-1"}
		}, "serves one rank alone"},
		"a rank of no job":   {func(s *apiv1.NodeStatus) { s.Drives[0].Serves = &apiv1.RankName{} }, "has 0 bytes"},
		"computes on a card": {func(s *apiv1.NodeStatus) { s.Drives[0].ComputesOn = OnCard }, ""},
		"computes on a whim": {func(s *apiv1.NodeStatus) { s.Drives[0].ComputesOn = "whim" }, `computes on "whim"`},
		"longest error":      {func(s *apiv1.NodeStatus) { s.Drives[0].SourceError = strings.Repeat("e", 4096) }, ""},
		"too long an error": {func(s *apiv1.NodeStatus) {
			s.Drives[0].SourceError = strings.Repeat("e", 4097)
		}, "at most 4096"},
		"a source":       {func(s *apiv1.NodeStatus) { s.Sources = sourcesOf("s3://b/p", "") }, ""},
		"another scheme": {func(s *apiv1.NodeStatus) { s.Sources = sourcesOf("ftp://b/p", "") }, `"ftp://b/p": it is not`},
		"a file":         {func(s *apiv1.NodeStatus) { s.Sources = sourcesOf("file:///p", "") }, "not the URL of a store"},
		"credentials":    {func(s *apiv1.NodeStatus) { s.Sources = sourcesOf("https://u:s@h/p", "") }, "a user name"},
		"link-local":     {func(s *apiv1.NodeStatus) { s.Sources = sourcesOf("http://[fe80::1]/p", "") }, "link-local"},
		"a node's URL":   {func(s *apiv1.NodeStatus) { s.Urls = []string{"http://169.254.169.254"} }, "link-local"},
		"a source of no name": {func(s *apiv1.NodeStatus) {
			s.Sources = []*apiv1.PartitionSource{{Url: "s3://b/p"}}
		}, "without a partition"},
		"a long URL": {func(s *apiv1.NodeStatus) {
			s.Sources = sourcesOf("s3://b/"+strings.Repeat("k", 4096-7), "")
		}, ""},
		"too long a URL": {func(s *apiv1.NodeStatus) {
			s.Sources = sourcesOf("s3://b/"+strings.Repeat("k", 4097-7), "")
		}, "it has 4097 bytes, at most 4096"},
		"too long an identity": {func(s *apiv1.NodeStatus) {
			s.Sources = sourcesOf("s3://b/p", strings.Repeat("i", 1025))
		}, "an identity of 1025 bytes"},
		"copies": {func(s *apiv1.NodeStatus) {
			s.Sources = sourcesOf("s3://b/p", "")
			s.Sources[0].Copies = []*apiv1.HeldCopy{{Node: "n"}}
		}, "names copies on nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := workerAgent("w0")
			c.change(s)
			_, _, err := New(Options{}).Beat(after(0), 1000, s)
			if c.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorIs(t, err, ErrRefused)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func sourcesOf(url, identity string) []*apiv1.PartitionSource {
	return []*apiv1.PartitionSource{{Partition: "p", Url: url, Identity: identity}}
}

// TestLocate locates a partition on two nodes, on one node, at a URL, and nowhere.
func TestLocate(t *testing.T) {
	f := New(Options{})
	p := part(t, "p0", 10)
	beat(t, f, after(0), agent(t, "a", p))
	beat(t, f, after(0), agent(t, "b", p))
	s, err := f.Select(nil, nil)
	require.NoError(t, err)
	entry := s.Manifest.Partitions[0]

	where := func() (nodes []string, url string) {
		found := f.Source(entry)
		assert.Equal(t, "p0", found.Partition)
		for _, c := range found.Copies {
			nodes = append(nodes, c.Node+"/"+c.Drive+" at "+strings.Join(c.Urls, " "))
		}
		return nodes, found.Url
	}
	nodes, url := where()
	assert.Equal(t, []string{"a/d at http://a", "b/d at http://b"}, nodes)
	assert.Empty(t, url)

	another := agent(t, "b", part(t, "p0", 11))
	another.Inventory = []byte("another file")
	beat(t, f, after(1), another)
	nodes, _ = where()
	assert.Equal(t, []string{"a/d at http://a"}, nodes, "the file on b is not the one of the manifest")

	f.Tick(after(5.5))
	nodes, _ = where()
	assert.Empty(t, nodes, "a is dead")

	w := workerAgent("w")
	w.Partitions, w.Schemas = []*apiv1.Partition{p}, agent(t, "a", p).Schemas
	w.Sources = []*apiv1.PartitionSource{{Partition: "p0", Url: "s3://bucket/p0", Identity: "etag 1"}}
	beat(t, f, after(6), w)
	nodes, url = where()
	assert.Empty(t, nodes)
	assert.Equal(t, "s3://bucket/p0", url)
	assert.Equal(t, "etag 1", f.Source(entry).Identity)
	assert.Equal(t, []string{Word("p0", p.ContentSha256)}, f.StoreWords("w"))

	bare := workerAgent("w") // a later beat leaves the inventory out
	beat(t, f, after(7), bare)
	_, url = where()
	assert.Equal(t, "s3://bucket/p0", url)
	for _, r := range f.Records(after(7), false) {
		assert.Empty(t, r.Status.Sources, "an operator's list has no inventory")
	}
}

// TestSelectFromAStore: partitions that no drive holds make a data set if an agent announces their URLs.
func TestSelectFromAStore(t *testing.T) {
	f := New(Options{})
	p := part(t, "p0", 10)
	w := workerAgent("w")
	w.Partitions, w.Schemas = []*apiv1.Partition{p}, agent(t, "a", p).Schemas
	beat(t, f, after(0), w)
	_, err := f.Select(nil, nil)
	assert.ErrorIs(t, err, ErrSelect)
	assert.ErrorContains(t, err, "none of its drives holds it")

	w = proto.CloneOf(w)
	w.Inventory, w.Sources = []byte("with sources"), sourcesOf("s3://b/p0", "")
	w.Sources[0].Partition = "p0"
	beat(t, f, after(1), w)
	s, err := f.Select(nil, nil)
	require.NoError(t, err)
	assert.Empty(t, s.Holders[0])
	assert.Equal(t, int64(10), s.Manifest.Rows())
	assert.Contains(t, f.Lost(Word("p0", p.ContentSha256)), "only workers without data can make it, from s3://b/p0")
}

func TestComputesOn(t *testing.T) {
	for want, d := range map[string]*apiv1.Drive{
		OnDrive: {Computes: true}, OnCPU: {}, OnCard: {Computes: true, ComputesOn: OnCard},
	} {
		assert.Equal(t, want, ComputesOn(d))
	}
}

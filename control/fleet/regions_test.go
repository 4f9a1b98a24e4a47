package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// regionAgent returns the status of a node that lists regions of one drive, which hold the partitions.
func regionAgent(t testing.TB, name string, regions []uint32, parts ...*apiv1.Partition) *apiv1.NodeStatus {
	s := agent(t, name, parts...)
	first := s.Drives[0]
	s.Drives = nil
	for _, region := range regions {
		d := proto.CloneOf(first)
		d.Name, d.Region, d.Regions = first.Name+string(rune('0'+region)), region, 7
		s.Drives = append(s.Drives, d)
	}
	return s
}

// TestRegionsOfADrive: a node lists each region of a drive as a drive. A region that is listed twice, a region that the
// drive does not have, and a region of another node's drive are refused.
func TestRegionsOfADrive(t *testing.T) {
	f := New(Options{})
	s := regionAgent(t, "a", []uint32{0, 3, 6}, part(t, "p0", 10))
	beat(t, f, after(0), s)
	selected, err := f.Select(nil, nil)
	require.NoError(t, err)
	assert.Equal(t, [][]DriveID{{{"a", "d0"}, {"a", "d3"}, {"a", "d6"}}}, selected.Holders, "each makes its splits")
	for _, name := range []string{"d0", "d3", "d6"} {
		assert.Equal(t, f.Flash(DriveID{"a", "d0"}), f.Flash(DriveID{"a", name}))
	}
	assert.NotEqual(t, f.Flash(DriveID{"a", "x"}), f.Flash(DriveID{"a", "y"}), "drives without a UUID")

	moved := proto.CloneOf(s)
	moved.Drives[2].Region = 5
	assert.Equal(t, []Kind{Changed}, beat(t, f, after(1), moved), "the region is stored")
	stored, ok := f.Stored("a")
	require.True(t, ok)
	record := &apiv1.NodeStatus{}
	require.NoError(t, proto.Unmarshal(stored, record))
	assert.EqualValues(t, 5, record.Drives[2].Region)
	assert.EqualValues(t, 7, record.Drives[2].Regions)

	for says, change := range map[string]func(s *apiv1.NodeStatus){
		"drives d3 and e are one drive in one region (3 of 7), uuid-b": func(s *apiv1.NodeStatus) {
			s.Drives = append(s.Drives, &apiv1.Drive{Name: "e", Uuid: "uuid-b", Region: 3, Regions: 7})
		},
		"drive d6: region 7 of 7":                 func(s *apiv1.NodeStatus) { s.Drives[2].Region = 7 },
		"drive d6: region 6 of 0":                 func(s *apiv1.NodeStatus) { s.Drives[2].Regions = 0 },
		"is node a's, which claimed it first and": func(s *apiv1.NodeStatus) { s.Drives[2].Uuid = "uuid-a" },
		"all regions of a drive are one node's":   func(s *apiv1.NodeStatus) { s.Drives[2].Uuid = "uuid-a" },
	} {
		s := regionAgent(t, "b", []uint32{0, 3, 6})
		change(s)
		_, _, err := f.Beat(after(2), 1000, s)
		require.ErrorIs(t, err, ErrRefused, says)
		assert.ErrorContains(t, err, says)
	}
	beat(t, f, after(2), regionAgent(t, "b", []uint32{0, 3, 6}))
}

// TestRegionsShareACopy: a partition on a drive is one copy, however many regions of the drive list it.
func TestRegionsShareACopy(t *testing.T) {
	f := New(Options{})
	p := part(t, "p0", 10)
	wanted := []*apiv1.PartitionCopies{{Partition: "p0", Copies: 2, Rows: p.Rows, Bytes: p.Bytes}}
	beat(t, f, after(0), regionAgent(t, "a", []uint32{0, 1, 2}, p))
	assert.Equal(t, CopyCount{Short: 1}, f.CountCopies(wanted))
	two := regionAgent(t, "b", []uint32{0, 1}, p)
	beat(t, f, after(0), two)
	assert.Equal(t, CopyCount{}, f.CountCopies(wanted))
	for _, d := range two.Drives { // of drives without a UUID each is another
		d.Uuid = ""
	}
	wanted[0].Copies = 3
	beat(t, f, after(1), two)
	assert.Equal(t, CopyCount{}, f.CountCopies(wanted))
	wanted[0].Copies = 4
	assert.Equal(t, CopyCount{Short: 1}, f.CountCopies(wanted))
}

// TestACopyIsReadThroughOneRegion: readers are sent to each flash once, through a region that is ready if there is one.
func TestACopyIsReadThroughOneRegion(t *testing.T) {
	f := New(Options{})
	s := regionAgent(t, "a", []uint32{0, 1, 2}, part(t, "p0", 10))
	beat(t, f, after(0), s)
	selected, err := f.Select(nil, nil)
	require.NoError(t, err)
	p := selected.Manifest.Partitions[0]
	for state, want := range map[string]string{"ready": "d0", "draining": "d1", "failed: x": "d1"} {
		s.Drives[0].State = state
		beat(t, f, after(1), s)
		copies := f.Source(p).Copies
		require.Len(t, copies, 1, state)
		assert.Equal(t, want, copies[0].Drive, state)
	}
	for _, d := range s.Drives {
		d.State = "failed: x"
	}
	beat(t, f, after(2), s)
	assert.Equal(t, "d0", f.Source(p).Copies[0].Drive, "it may be ready again by then")
}

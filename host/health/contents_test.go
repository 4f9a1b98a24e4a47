package health

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
)

// filled makes a drive in a file with members a, b and c of 100,000 bytes each and returns its path and where they lie.
func filled(t *testing.T) (path string, members []volume.Member) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "drive")
	dev, err := sdk.Create(t.Context(), "file:"+path+"?size=4MiB&slm=64KiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	v, err := volume.Open(t.Context(), dev)
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, v.Put(t.Context(), name, 100_000, bytes.NewReader(bytes.Repeat([]byte{1}, 100_000))))
	}
	members, err = v.List(t.Context())
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	return path, members
}

// TestContentsNameWhatACutTook wherever the flash is cut, and pass where the cut took nothing of the archive.
func TestContentsNameWhatACutTook(t *testing.T) {
	_, members := filled(t)
	end := members[2].Offset + 100_352 // the last member and its padding
	for _, c := range []struct {
		at    int64
		fails bool
		says  []string
		not   []string
	}{
		{end + 1024, false, []string{"3 members", "nothing of it lies there", "millrace drive trim"}, nil},
		{end + 512, true, []string{"members that lay behind byte", "how many is not known"}, []string{"member c"}},
		{members[2].Offset + 50_000, true, []string{"member c lacks ", "bytes 251904 to 4194304"},
			[]string{"member b"}},
		{members[1].Offset + 512, true, []string{"member b lacks 99488 of its 100000 bytes", "members that lay behind"},
			[]string{"member a"}},
		{members[1].Offset - 512, true, []string{"members that lay behind byte"}, []string{"member a", "member b"}},
		{0, true, []string{"members that lay behind byte 0 are gone"}, nil},
	} {
		t.Run(fmt.Sprint(c.at), func(t *testing.T) {
			path, _ := filled(t)
			require.NoError(t, os.Truncate(path, c.at))
			for range 2 { // the second time the file is whole again
				checks := Validate(t.Context(), "file:"+path+"?slm=1MiB", Options{})
				text := detail(checks, "contents")
				assert.Equal(t, c.fails, results(checks)["contents"] == Failed, text)
				assert.Contains(t, text, "missing and read as zeros")
				for _, s := range c.says {
					assert.Contains(t, text, s)
				}
				for _, s := range c.not {
					assert.NotContains(t, text, s)
				}
			}
		})
	}
}

// TestHealthTellsOfACut: SMART has a critical warning and a media error, and which bytes; after a trim the warning is
// gone.
func TestHealthTellsOfACut(t *testing.T) {
	path, members := filled(t)
	require.NoError(t, os.Truncate(path, members[2].Offset+102_400))
	read := func() *SMARTLog {
		dev, err := sdk.Open(t.Context(), "file:"+path+"?slm=64KiB", sdk.DeviceOptions{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, dev.Close()) }()
		r, err := Read(t.Context(), dev)
		require.NoError(t, err)
		return r
	}
	r := read()
	assert.Equal(t, []string{"reliability is degraded"}, r.Warnings)
	assert.EqualValues(t, 1, r.MediaErrors)
	require.Len(t, r.Lost, 1)
	assert.Equal(t, sdk.LostRange{Offset: members[2].Offset + 102_400, Size: 4<<20 - members[2].Offset - 102_400},
		r.Lost[0])

	dev, err := sdk.Open(t.Context(), "file:"+path+"?slm=64KiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	v, err := volume.Open(t.Context(), dev)
	require.NoError(t, err)
	_, err = v.Trim(t.Context())
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	r = read()
	assert.Empty(t, r.Warnings)
	assert.Empty(t, r.Lost)
	assert.EqualValues(t, 1, r.MediaErrors, "it happened")
}

// TestManyDamagedMembersAreCounted checks that the text stays short when many members are damaged.
func TestManyDamagedMembersAreCounted(t *testing.T) {
	var members []volume.Member
	for i := range 30 {
		members = append(members, volume.Member{Name: fmt.Sprintf("m%02d", i), Offset: int64(i)*1024 + 512, Size: 512})
	}
	list := damage(members, 30*1024, []sdk.LostRange{{Offset: 0, Size: 15 * 1024}})
	require.Len(t, list, 11)
	assert.Equal(t, "5 more members lack bytes", list[10])
	assert.Empty(t, damage(members, 30*1024, []sdk.LostRange{{Offset: 31 * 1024, Size: 100}}))
	assert.Empty(t, damage(members, 30*1024, nil))
	list = damage(members[:1], 1024, []sdk.LostRange{{Offset: 700, Size: 100}, {Offset: 900, Size: 10}})
	assert.Equal(t, "member m00 lacks 110 of its 512 bytes", strings.Join(list, ""))
}

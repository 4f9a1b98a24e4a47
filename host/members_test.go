package host

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk"
)

// TestAnEmptyMemberDoesNotBlockADrive checks that an empty member is left out and logged, and that a member that the
// caller named, or that has bytes, is an error.
func TestAnEmptyMemberDoesNotBlockADrive(t *testing.T) {
	var log bytes.Buffer
	device := sdk.DeviceOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	uri := onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 40), "_SUCCESS": nil, "empty.parquet": nil})
	for _, members := range [][]string{nil, {"*"}, {"a.parquet", "empty*"}} {
		log.Reset()
		d, err := OpenDrive(t.Context(), uri, DriveOptions{SLM: 8 << 20, Members: members, Device: device})
		require.NoError(t, err)
		require.Len(t, d.Partitions(), 1)
		assert.Equal(t, "a.parquet", d.Partitions()[0].Name)
		assert.Contains(t, log.String(), "member=empty.parquet")
		require.NoError(t, d.Close())
	}
	_, err := OpenDrive(t.Context(), uri,
		DriveOptions{SLM: 8 << 20, Members: []string{"a.parquet", "empty.parquet"}, Device: device})
	require.ErrorContains(t, err, "empty.parquet")
	_, err = OpenDrive(t.Context(),
		onDrive(t, map[string][]byte{"a.parquet": numbered(t, 0, 40),
			"short": []byte("x")}), DriveOptions{SLM: 8 << 20})
	require.ErrorContains(t, err, "short", "it may hold rows that are missed")
}

// TestASparseMemberIsRefusedByName, and does not keep a node's drive from serving the others.
func TestASparseMemberIsRefusedByName(t *testing.T) {
	uri := "file:" + filepath.Join(t.TempDir(), "d.flash")
	dev, err := sdk.Create(t.Context(), uri+"?size=4MiB&slm=8MiB", sdk.DeviceOptions{})
	require.NoError(t, err)
	v, err := volume.Open(t.Context(), dev)
	require.NoError(t, err)
	good := numbered(t, 0, 40)
	require.NoError(t, v.Put(t.Context(), "a.parquet", int64(len(good)), bytes.NewReader(good)))
	require.NoError(t, v.Put(t.Context(), "holes.parquet", 0, bytes.NewReader(nil)))
	used, _ := v.Used()
	// Its header becomes a sparse member's: another type, and the checksum that goes with it.
	b := make([]byte, 512)
	_, err = dev.ReadAt(b, used-512)
	require.NoError(t, err)
	b[156] = 'S'
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], []byte{byte('0' + sum>>15&7), byte('0' + sum>>12&7), byte('0' + sum>>9&7), byte('0' + sum>>6&7),
		byte('0' + sum>>3&7), byte('0' + sum&7), 0, ' '})
	_, err = dev.WriteAt(b, used-512)
	require.NoError(t, err)
	require.NoError(t, dev.Close())

	_, err = OpenDrive(t.Context(), uri, DriveOptions{Members: []string{"holes.parquet"}})
	require.ErrorIs(t, err, volume.ErrSparse)
	require.ErrorContains(t, err, `"holes.parquet"`)
	require.ErrorContains(t, err, "--sparse")
	var skipped []string
	d, err := OpenDrive(t.Context(), uri, DriveOptions{Skip: func(member string, err error) {
		require.ErrorIs(t, err, volume.ErrSparse)
		skipped = append(skipped, member)
	}})
	require.NoError(t, err)
	assert.Equal(t, []string{"holes.parquet"}, skipped)
	assert.Len(t, d.Partitions(), 1)
	require.NoError(t, d.Close())
}

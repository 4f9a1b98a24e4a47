package vocabulary

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/internal/goldenfile"
)

// exampleFiles writes a vocabulary of two columns with every rule, and returns both files.
func exampleFiles(t testing.TB) (vocabulary, counts []byte) {
	t.Helper()
	b, err := NewBuilder(columnsNamed(2), Rules{Order: ByCount, Base: 8, Null: SomeID(1), Rare: SomeID(-2), Buckets: 4,
		MinCount: 2, MaxSize: 3}, BuilderOptions{Partitions: []Counted{{"day_0", [32]byte{7}}, {"day_1", [32]byte{8}}}})
	require.NoError(t, err)
	addAll(t, b, []testColumn{scalars(9, 7, 9, 7, 9, 5), scalars(1, -1, -1, 1<<40, -1, 1<<40)})
	path := filepath.Join(t.TempDir(), "v.vocab")
	_, err = b.Finish(path)
	require.NoError(t, err)
	for _, to := range []struct {
		path  string
		bytes *[]byte
	}{{path, &vocabulary}, {path + CountsSuffix, &counts}} {
		*to.bytes, err = os.ReadFile(to.path)
		require.NoError(t, err)
	}
	return vocabulary, counts
}

func TestFormOfTheFiles(t *testing.T) {
	vocabulary, counts := exampleFiles(t)
	goldenfile.Bytes(t, "testdata/vocabulary.v1.hex", vocabulary)
	goldenfile.Bytes(t, "testdata/counts.v2.hex", counts)
	v, err := decodeVocabulary(vocabulary)
	require.NoError(t, err)
	assert.Equal(t, [][]int64{{9, 7}, {-1, 1 << 40}}, v.Tables)
}

func decodeVocabulary(b []byte) (*Vocabulary, error) { return Read(bytes.NewReader(b), int64(len(b))) }

// resum sets the checksum of a file that was changed.
func resum(b []byte) []byte {
	end := len(b) - 4
	binary.LittleEndian.PutUint32(b[end:], crc32c.Checksum(b[:end]))
	return b
}

// TestDamagedVocabularies changes every byte, cuts everywhere, and writes what the checksum does not find.
func TestDamagedVocabularies(t *testing.T) {
	good, _ := exampleFiles(t)
	for i := range good {
		for _, flip := range []byte{1, 0x80} {
			b := append([]byte{}, good...)
			b[i] ^= flip
			_, err := decodeVocabulary(b)
			require.Error(t, err, "byte %d", i)
		}
		_, err := decodeVocabulary(good[:i])
		require.ErrorIs(t, err, ErrDamaged, "%d bytes", i)
	}
	_, err := decodeVocabulary(append(append([]byte{}, good...), 0))
	require.ErrorIs(t, err, ErrDamaged)
	tables := len(good) - 4 - 16 - 4*8
	for _, c := range []struct {
		name   string
		change func(b []byte)
		want   error
	}{
		{"major version", func(b []byte) { b[8] = 2 }, ErrVersion},
		{"minor version", func(b []byte) { b[10] = 1 }, ErrVersion},
		{"flags", func(b []byte) { b[17] = 8 }, ErrDamaged},
		{"zero bytes", func(b []byte) { b[19] = 1 }, ErrDamaged},
		{"order", func(b []byte) { b[16] = 0 }, ErrDamaged},
		{"header too long", func(b []byte) { b[12]++ }, ErrDamaged},
		{"header too short", func(b []byte) { b[12]-- }, ErrDamaged},
		{"more columns than the header holds", func(b []byte) { b[67] = 0xff }, ErrDamaged},
		{"tables", func(b []byte) { b[68] = 3 }, ErrDamaged},
		{"a key twice", func(b []byte) { copy(b[tables+8:], b[tables:tables+8]) }, ErrDamaged},
		{"keys of no table", func(b []byte) { b[len(b)-4-8] = 1 }, ErrDamaged},
		{"more keys than there are", func(b []byte) { b[len(b)-4-8] = 3 }, ErrDamaged},
		{"more keys than the largest size", func(b []byte) { b[56] = 1 }, ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := append([]byte{}, good...)
			c.change(b)
			_, err := decodeVocabulary(resum(b))
			require.ErrorIs(t, err, c.want)
		})
	}
}

// openCounts opens a sidecar of some bytes.
func openCounts(b []byte) (*Counts, error) {
	c := &Counts{}
	return c, c.checkContents(bytes.NewReader(b), int64(len(b)))
}

func TestDamagedCounts(t *testing.T) {
	_, good := exampleFiles(t)
	for i := range good {
		b := append([]byte{}, good...)
		b[i] ^= 1
		_, err := openCounts(b)
		require.Error(t, err, "byte %d", i)
		_, err = openCounts(good[:i])
		require.ErrorIs(t, err, ErrDamaged, "%d bytes", i)
	}
	for _, c := range []struct {
		name   string
		change func(b []byte)
		want   error
	}{
		{"version", func(b []byte) { b[8] = 1 }, ErrVersion},
		{"more partitions than there are", func(b []byte) { b[len(b)-countsTrailer]++ }, ErrDamaged},
		{"fewer partitions than there are", func(b []byte) { b[len(b)-countsTrailer]-- }, ErrDamaged},
		{"no tables", func(b []byte) { b[12] = 0 }, ErrDamaged},
		{"many tables", func(b []byte) { b[15] = 0xff }, ErrDamaged},
		{"rows", func(b []byte) { b[16] = 1 }, ErrDamaged},
		{"count 0", func(b []byte) { b[countsHeader+16] = 0 }, ErrDamaged},
		{"not sorted", func(b []byte) { b[countsHeader] = 0xff }, ErrDamaged},
		{"entries of no table", func(b []byte) { b[len(b)-countsTrailer-2*32-8] = 0 }, ErrDamaged},
		{"more entries than there are", func(b []byte) { b[len(b)-countsTrailer-2*32-8]++ }, ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := append([]byte{}, good...)
			c.change(b)
			_, err := openCounts(resum(b))
			require.ErrorIs(t, err, c.want)
		})
	}
}

// TestExtendRefusesOthers checks vocabularies and counts that do not belong together, or to the pipeline.
func TestExtendRefusesOthers(t *testing.T) {
	vocabulary, counts := exampleFiles(t)
	v, err := decodeVocabulary(vocabulary)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "counts")
	require.NoError(t, os.WriteFile(path, counts, 0o600))
	c, err := OpenPartial(path)
	require.NoError(t, err)
	other := *v
	other.Digest[0] ^= 1
	_, err = Extend(&other, c, columnsNamed(2), BuilderOptions{})
	require.ErrorIs(t, err, ErrOther)
	_, err = Extend(v, c, columnsNamed(1), BuilderOptions{})
	require.ErrorIs(t, err, ErrOther)
	columns := columnsNamed(2)
	columns[1].Chain[0] ^= 1
	_, err = Extend(v, c, columns, BuilderOptions{})
	require.ErrorIs(t, err, ErrOther)
	columns = columnsNamed(2)
	columns[1].Name = "dog"
	_, err = Extend(v, c, columns, BuilderOptions{})
	require.ErrorIs(t, err, ErrOther)
	for name, digest := range map[string][32]byte{"day_2": {9}, "another name": {8}} {
		b, err := Extend(v, c, columnsNamed(2),
			BuilderOptions{Partitions: []Counted{{"new", [32]byte{1}}, {name, digest}}})
		if name == "day_2" {
			require.NoError(t, err)
			require.NoError(t, b.Close())
			continue
		}
		var counted *CountedError
		require.ErrorAs(t, err, &counted)
		require.ErrorIs(t, err, ErrCounted)
		assert.Equal(t, name, counted.Partition)
	}
	lacking := *v
	lacking.Tables = [][]int64{{9, 7, 4711}, v.Tables[1]}
	b, err := Extend(&lacking, c, columnsNamed(2), BuilderOptions{Folder: t.TempDir()})
	require.NoError(t, err)
	_, err = b.Finish(filepath.Join(t.TempDir(), "v"))
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, b.Close())
}

func FuzzDecode(f *testing.F) {
	vocabulary, _ := exampleFiles(f)
	f.Add(vocabulary)
	f.Add(vocabulary[:headerSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 { // most inputs have a checksum that holds
			b = resum(append([]byte{}, b...))
		}
		v, err := decodeVocabulary(b)
		if err != nil {
			return
		}
		// A vocabulary that is read is written as the same bytes.
		again := fileHeader(v.Rules, v.Columns)
		for _, keys := range v.Tables {
			for _, key := range keys {
				again = binary.LittleEndian.AppendUint64(again, uint64(key))
			}
		}
		for _, keys := range v.Tables {
			again = binary.LittleEndian.AppendUint64(again, uint64(len(keys)))
		}
		require.Equal(t, b, resum(append(again, 0, 0, 0, 0)))
	})
}

func FuzzCounts(f *testing.F) {
	_, counts := exampleFiles(f)
	f.Add(counts)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 {
			b = resum(append([]byte{}, b...))
		}
		if c, err := openCounts(b); err == nil {
			n := int64(0)
			for i := range c.Tables() {
				n += c.Keys(i)
			}
			require.Equal(t, c.Entries, n)
		}
	})
}

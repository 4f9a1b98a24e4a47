package vocabulary

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/tensor"
)

func TestDescribe(t *testing.T) {
	file, _ := exampleFiles(t)
	d, err := Describe(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	v, err := decodeVocabulary(file)
	require.NoError(t, err)
	assert.Equal(t, &Description{Rules: v.Rules, Columns: v.Columns, Sizes: []int64{2, 2}, Digest: v.Digest}, d)
	assert.EqualValues(t, len(file), d.Bytes())
	assert.EqualValues(t, 4, d.Keys())

	raw, err := d.Encode()
	require.NoError(t, err)
	goldenfile.Bytes(t, "testdata/description.v1.hex", raw)
	again, err := ReadDescription(raw, d.Digest)
	require.NoError(t, err)
	assert.Equal(t, d, again)
}

// TestADescribedVocabularyHasNoKeys: everything but the lookup itself is as with the file.
func TestADescribedVocabularyHasNoKeys(t *testing.T) {
	file, _ := exampleFiles(t)
	whole, err := decodeVocabulary(file)
	require.NoError(t, err)
	d, err := Describe(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	described := d.Vocabulary()
	assert.Equal(t, whole.Keys(), described.Keys())
	want, err := whole.Lookup(whole.Columns[1], UnknownDrop, false)
	require.NoError(t, err)
	got, err := described.Lookup(whole.Columns[1], UnknownDrop, false)
	require.NoError(t, err)
	wantLeast, wantGreatest := want.Range()
	gotLeast, gotGreatest := got.Range()
	assert.Equal(t, []int64{wantLeast, wantGreatest}, []int64{gotLeast, gotGreatest})

	schema := &tensor.Schema{Keys: []tensor.Key{{Name: "k", List: true}}, IDs: tensor.Int64}
	_, err = NewApplier(schema, schema, []*Lookup{want})
	require.NoError(t, err)
	_, err = NewApplier(schema, schema, []*Lookup{got})
	assert.ErrorIs(t, err, tensor.ErrShape)
	assert.ErrorContains(t, err, "not at hand")
}

// TestDescribeChecksAsReadDoes: whatever damage Read refuses, Describe refuses.
func TestDescribeChecksAsReadDoes(t *testing.T) {
	good, _ := exampleFiles(t)
	for i := range good {
		b := append([]byte{}, good...)
		b[i] ^= 1
		_, err := Describe(bytes.NewReader(b), int64(len(b)))
		require.Error(t, err, "byte %d", i)
		_, err = Describe(bytes.NewReader(good[:i]), int64(i))
		require.ErrorIs(t, err, ErrDamaged, "%d bytes", i)
	}
}

func TestDescriptionsThatAreRefused(t *testing.T) {
	file, _ := exampleFiles(t)
	d, err := Describe(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	good, err := d.Encode()
	require.NoError(t, err)
	for i := range good {
		_, err := ReadDescription(good[:i], d.Digest)
		require.ErrorIs(t, err, ErrDamaged, "%d bytes", i)
	}
	_, err = ReadDescription(append(bytes.Clone(good), 0), d.Digest)
	require.ErrorIs(t, err, ErrDamaged)
	_, err = ReadDescription(make([]byte, MaxDescription+1), d.Digest)
	require.ErrorIs(t, err, ErrDamaged)
	large := bytes.Clone(good)
	large[len(large)-16] = 4 // the rules allow 3 keys
	_, err = ReadDescription(large, d.Digest)
	require.ErrorIs(t, err, ErrDamaged)

	name := make([]byte, MaxNameBytes)
	for i := range name {
		name[i] = 'n'
	}
	wide := &Description{Rules: d.Rules}
	for i := range MaxDescription / MaxNameBytes {
		wide.Columns = append(wide.Columns, Column{Name: string(name[:MaxNameBytes-1-i]), Table: i})
		wide.Sizes = append(wide.Sizes, 1)
	}
	_, err = wide.Encode()
	require.ErrorIs(t, err, ErrRules)
	wide.Columns, wide.Sizes = wide.Columns[:31], wide.Sizes[:31]
	raw, err := wide.Encode()
	require.NoError(t, err)
	_, err = ReadDescription(raw, d.Digest)
	require.NoError(t, err)
}

func FuzzReadDescription(f *testing.F) {
	file, _ := exampleFiles(f)
	d, err := Describe(bytes.NewReader(file), int64(len(file)))
	require.NoError(f, err)
	good, err := d.Encode()
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:headerSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ReadDescription(b, Digest{})
		if err != nil {
			return
		}
		again, err := d.Encode()
		require.NoError(t, err)
		require.Equal(t, b, again)
		require.Positive(t, d.Bytes())
		require.GreaterOrEqual(t, d.Vocabulary().Keys(), int64(0))
	})
}

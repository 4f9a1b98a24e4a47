package offload

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func fullMetrics() Metrics {
	m := Metrics{Gthp: 123456.789, Lthp: 2.5, Pcycle: 1e-7, Tcycle: 0.5, Cores: 2, Supply: 4}
	for cut := Transforms; cut <= All; cut++ {
		m.Candidates = append(m.Candidates, Candidate{cut, 1 / 3.0, 1e-9, 5})
	}
	return m
}

func TestTableTravels(t *testing.T) {
	var table Table
	keys := KeyParts{Model: "m"}.Keys()
	require.NoError(t, table.Put(keys, fullMetrics(), Known{true, true, true}))
	b, err := table.Encode()
	require.NoError(t, err)
	read, err := DecodeTable(b)
	require.NoError(t, err)
	got, known := read.Lookup(keys)
	assert.Equal(t, fullMetrics(), got)
	assert.True(t, known.All())
	again, err := read.Encode()
	require.NoError(t, err)
	assert.Equal(t, b, again)
}

// TestTableIsBounded fills a table to its limit and adds one entry: the entry that was not used for longest goes. A
// full table can be encoded and decoded; a table with one entry more is refused.
func TestTableIsBounded(t *testing.T) {
	var table Table
	key := func(i int) Keys { return KeyParts{Model: fmt.Sprint(i)}.Keys() }
	for i := range tableEntries {
		require.NoError(t, table.Put(key(i), fullMetrics(), Known{true, true, true}))
	}
	_, known := table.Lookup(key(0)) // used again
	assert.True(t, known.All())
	require.NoError(t, table.Put(key(tableEntries), fullMetrics(), Known{true, true, true}))
	_, known = table.Lookup(key(0))
	assert.True(t, known.All())
	_, known = table.Lookup(key(1))
	assert.Equal(t, Known{}, known)
	b, err := table.Encode()
	require.NoError(t, err)
	assert.Less(t, len(b), MaxTableBytes/2)
	_, err = DecodeTable(b)
	require.NoError(t, err)
	table.models = append(table.models, table.models[0])
	b, err = table.Encode()
	require.NoError(t, err)
	_, err = DecodeTable(b)
	require.ErrorIs(t, err, ErrTable)

	four := fullMetrics()
	four.Candidates = append(four.Candidates, four.Candidates[0])
	require.ErrorIs(t, table.Put(key(0), four, Known{Remote: true}), ErrMetrics)
}

func TestPutKeepsWhatWasMeasured(t *testing.T) {
	var table Table
	keys := KeyParts{Model: "m"}.Keys()
	require.NoError(t, table.Put(keys, Metrics{Gthp: 1, Lthp: 2}, Known{Model: true}))
	m, known := table.Lookup(keys)
	assert.Equal(t, Known{Model: true}, known)
	assert.Equal(t, Metrics{Gthp: 1}, m)
	require.NoError(t, table.Put(keys, Metrics{Gthp: 3}, Known{Model: true}))
	m, _ = table.Lookup(keys)
	assert.InDelta(t, 3, m.Gthp, 0)
	assert.Len(t, table.models, 1)
}

func TestDecodeTableRefuses(t *testing.T) {
	k := strings.Repeat("0", 64)
	for name, text := range map[string]string{
		"nothing":         ``,
		"no JSON":         `{`,
		"another version": `{"version":2}`,
		"unknown field":   `{"version":1,"extra":1}`,
		"short key":       `{"version":1,"models":[{"key":"00"}]}`,
		"key of letters":  `{"version":1,"models":[{"key":"` + strings.Repeat("z", 64) + `"}]}`,
		"negative":        `{"version":1,"models":[{"key":"` + k + `","gthp_rows_per_second":-1}]}`,
		"too large":       `{"version":1,"pipelines":[{"key":"` + k + `","lthp_rows_per_second":1e19}]}`,
		"unknown cut":     `{"version":1,"remotes":[{"key":"` + k + `","candidates":[{"cut":"half"}]}]}`,
		"cut none":        `{"version":1,"remotes":[{"key":"` + k + `","candidates":[{"cut":"none"}]}]}`,
		"four candidates": `{"version":1,"remotes":[{"key":"` + k + `","candidates":[` +
			strings.Repeat(`{"cut":"all"},`, 3) + `{"cut":"all"}]}]}`,
	} {
		_, err := DecodeTable([]byte(text))
		require.ErrorIs(t, err, ErrTable, name)
	}
	space := bytes.Repeat([]byte(" "), MaxTableBytes)
	copy(space, `{"version":1}`)
	_, err := DecodeTable(space)
	require.NoError(t, err)
	_, err = DecodeTable(append(space, ' '))
	require.ErrorIs(t, err, ErrTable)
}

func FuzzDecodeTable(f *testing.F) {
	var table Table
	require.NoError(f, table.Put(KeyParts{Model: "m"}.Keys(), fullMetrics(), Known{true, true, true}))
	b, err := table.Encode()
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"version":1,"models":[{"key":"` + strings.Repeat("0", 64) + `","gthp_rows_per_second":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := DecodeTable(b)
		if err != nil {
			require.ErrorIs(t, err, ErrTable)
			return
		}
		m, _ := table.Lookup(Keys{})
		if m.Pcycle > 0 || len(m.Candidates) == 0 {
			_, err = Decide(Extended, m)
			require.NoError(t, err)
		}
		b, err = table.Encode()
		require.NoError(t, err)
		again, err := DecodeTable(b)
		require.NoError(t, err)
		require.Equal(t, table, again)
	})
}

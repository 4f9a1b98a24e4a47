package tracetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	got, err := Read([]byte("# what it is\n\n0 (4)80(123) # ICReq\n12 0400080009(3)\n"))
	require.ErrorContains(t, err, "line 4: the PDU is not as long")
	require.Nil(t, got)
	got, err = Read([]byte("# what it is\n\n0 (4)80(123) # ICReq\n12 0401080008000000\n"))
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, "ICReq", got[0].What)
	assert.Len(t, got[0].Bytes, 128)
	assert.Equal(t, PDU{12, []byte{4, 1, 8, 0, 8, 0, 0, 0}, ""}, got[1])
	assert.Equal(t, "0 (4)80(123) # ICReq\n12 0401080008000000\n", string(got[1].Append(got[0].Append(nil))))
	for line, want := range map[string]string{
		"0": "1 words", "0 00 00": "3 words", "x 00": "connection", "-1 00": "connection", "0 0": "odd length",
		"0 zz": "invalid byte",
		"0 (":  "invalid byte", "0 (x)": "number of zeros", "0 (0)": "number of zeros", "0 (-1)": "number of zeros",
		"0 (3000000)": "more than", "0 (2000000)(2000000)": "more than", "0 00": "as long",
	} {
		_, err := Read([]byte(line))
		assert.ErrorContains(t, err, want, line)
	}
}

// The traces that are kept are whole: each begins with a connection request, and every connection of it too.
func TestGolden(t *testing.T) {
	all, err := Golden()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for name, pdus := range all {
		seen := map[int]bool{}
		for i, p := range pdus {
			if !seen[p.Conn] {
				seen[p.Conn] = true
				assert.Zero(t, p.Bytes[0], "%s: PDU %d", name, i)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("0 (4)80(123) # ICReq\n"))
	f.Add([]byte("1 0401080008000000"))
	f.Fuzz(func(t *testing.T, text []byte) {
		pdus, err := Read(text)
		if err != nil {
			return
		}
		var again []byte
		for _, p := range pdus {
			p.What = ""
			again = p.Append(again)
		}
		back, err := Read(again)
		if err != nil || len(back) != len(pdus) {
			t.Fatal(len(back), err)
		}
		for i := range back {
			if back[i].Conn != pdus[i].Conn || !bytes.Equal(back[i].Bytes, pdus[i].Bytes) {
				t.Fatal(fmt.Sprint(back[i], pdus[i]))
			}
		}
	})
}

package guest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestArchiveIsNewcByteForByte(t *testing.T) {
	var b bytes.Buffer
	a := newArchive(&b)
	a.file("a/b", []byte("hello"))
	require.NoError(t, a.Close())
	want := "070701" + "00000000" + "000041ED" + strings.Repeat("00000000", 2) + "00000001" + strings.Repeat("00000000",
		6) +
		"00000002" + "00000000" + "a\x00" +
		"070701" + "00000001" + "000081ED" + strings.Repeat("00000000", 2) + "00000001" + "00000000" + "00000005" +
		strings.Repeat("00000000", 4) + "00000004" + "00000000" + "a/b\x00\x00\x00" + "hello\x00\x00\x00" +
		"070701" + strings.Repeat("00000000", 4) + "00000001" + strings.Repeat("00000000",
		6) + "0000000B" + "00000000" + "TRAILER!!!\x00"
	want += strings.Repeat("\x00", -len(want)&3)
	assert.Equal(t, want, b.String())
}

type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

func TestArchiveKeepsTheFirstError(t *testing.T) {
	a := newArchive(&failing{left: 200})
	a.file("a", make([]byte, 300))
	a.file("b", nil)
	assert.EqualError(t, a.Close(), "full")
}

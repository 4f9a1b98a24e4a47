package getlocalhour

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOffsets(t *testing.T) {
	for s, want := range map[string]int64{"+00:00": 0, "-00:00": 0, "+05:45": 20700, "-23:59": -86340, "+23:59": 86340} {
		got, err := readOffset(s)
		require.NoError(t, err, s)
		assert.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "Z", "+24:00", "+01:60", "01:00", "+1:00", "+01:0", "+01.00", "+0x:00", "++1:00",
		"+01:-1",
		"+01:00 ", "+01:000"} {
		_, err := readOffset(s)
		assert.Error(t, err, s)
	}
}

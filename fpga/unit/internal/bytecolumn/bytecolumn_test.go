package bytecolumn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		n       int
		offsets []uint32
		size    int
		valid   []byte
		fits    bool
	}{
		"nothing":                {0, []uint32{0}, 0, nil, true},
		"two values":             {2, []uint32{0, 3, 5}, 5, nil, true},
		"an empty value":         {2, []uint32{0, 0, 5}, 5, []byte{0, 1}, true},
		"more bytes than used":   {1, []uint32{2, 3}, 9, []byte{1, 1}, true},
		"no offsets":             {0, nil, 0, nil, false},
		"too few offsets":        {2, []uint32{0, 3}, 5, nil, false},
		"too many offsets":       {1, []uint32{0, 3, 5}, 5, nil, false},
		"validity that is short": {2, []uint32{0, 3, 5}, 5, []byte{1}, false},
		"offsets that decrease":  {2, []uint32{0, 3, 2}, 5, nil, false},
		"offsets past the end":   {2, []uint32{0, 3, 6}, 5, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(c.n, c.offsets, c.size, c.valid)
			if c.fits {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrShape)
		})
	}
}

package partitions

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

func TestTheLengthOfARangeIsBounded(t *testing.T) {
	const size = 1 << 40
	first, last, err := parseRange(fmt.Sprintf("bytes=5-%d", 4+apiv1.MaxPartitionRange), size)
	require.NoError(t, err)
	assert.EqualValues(t, apiv1.MaxPartitionRange, last-first+1)
	_, _, err = parseRange(fmt.Sprintf("bytes=5-%d", 5+apiv1.MaxPartitionRange), size)
	require.ErrorIs(t, err, ErrRequest)
	_, _, err = parseRange("bytes=0-0", 0)
	require.ErrorIs(t, err, ErrRequest, "nothing is in an empty partition")
}

func FuzzParseRange(f *testing.F) {
	for _, text := range []string{"bytes=0-0", "bytes=10-99", "bytes=-8", "bytes=5-", "bytes=9223372036854775807-0",
		"bytes=0-18446744073709551615", "bytes=1-2,3-4", "Bytes=0-1"} {
		f.Add(text, int64(100))
	}
	f.Fuzz(func(t *testing.T, text string, size int64) {
		first, last, err := parseRange(text, size)
		if err != nil {
			require.ErrorIs(t, err, ErrRequest)
			return
		}
		require.True(t, 0 <= first && first <= last && last < size && last-first < apiv1.MaxPartitionRange)
	})
}

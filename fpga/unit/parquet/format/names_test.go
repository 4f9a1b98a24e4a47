package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesPrint(t *testing.T) {
	require.Equal(t, "RLE_DICTIONARY", RLEDictionary.String())
	require.Equal(t, "BROTLI", Brotli.String())
	require.Equal(t, "FIXED_LEN_BYTE_ARRAY", FixedLenByteArray.String())
	require.Equal(t, "DATA_PAGE_V2", DataPageV2.String())
	require.Equal(t, "float32", KindFloat32.String())
	require.Equal(t, "codec 9", Codec(9).String())
	require.Equal(t, "unknown encoding", Encoding(unknownValue).String())
	require.Equal(t, "codec LZO is not supported", LZO.Supported().Error())
	require.Equal(t, `row group 1: column "a": page 2 at byte 3 of the file: x: `+
		`damaged or truncated: compare with the writer's copy`,
		(&PageError{RowGroup: 1, Column: "a", Page: 2, Offset: 3, Err: corrupt("x")}).Error())
}

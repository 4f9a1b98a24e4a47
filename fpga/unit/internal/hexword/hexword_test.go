package hexword_test

import (
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/hexword"
)

const digits = "0123456789abcdefABCDEF"

func check(t require.TestingT, token []byte) {
	x := binary.LittleEndian.Uint64(token)
	if ok := strings.Trim(string(token), digits) == ""; ok != hexword.Digits(x) {
		require.Equal(t, ok, hexword.Digits(x), "%q", token)
	} else if ok {
		want, err := strconv.ParseUint(string(token), 16, 32)
		require.NoError(t, err)
		require.Equal(t, uint32(want), hexword.Value(x), "%q", token)
	}
}

// Every byte at every place, among neighbours at both ends of what a carry could reach.
func TestEveryByteAtEveryPlace(t *testing.T) {
	for _, others := range []string{"00000000", "ffffffff", "99999999", "AAAAAAAA",
		"/:@G`g0f", "\xff\xff\xff\xff\xff\xff\xff\xff"} {
		for b := range 256 {
			for at := range 8 {
				token := []byte(others)
				token[at] = byte(b)
				check(t, token)
			}
		}
	}
}

func TestAnyWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check(t, []byte(rapid.StringOfN(rapid.RuneFrom([]rune(digits)), 8, 8, -1).Draw(t, "digits")))
		check(t, rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "bytes"))
	})
}

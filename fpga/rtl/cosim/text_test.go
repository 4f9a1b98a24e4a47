package cosim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/rtl"
	"github.com/millrace/millrace/fpga/unit/hextoint"
)

// hexToken is a token for unit hex_to_int. A row that is not present has a token, too, which must not matter.
type hexToken struct {
	text    string
	present bool
}

// The bits behind the id in a result of unit hex_to_int.
const (
	hexPresent = 1 << 32
	hexDamaged = 1 << 33
)

// hardTokens have every byte at every place, every length, and the signs that other parsers take.
func hardTokens() []string {
	tokens := []string{"", "0", "f", "F", "ffffffff", "80000000", "00000000", "123456789", "0123456789abcdef", "0x1a",
		"1_0", "+1a", "-1", " 1a", "1a ", "1a\r", "g", "nan", "\u0665"}
	for length := 1; length <= 8; length++ {
		tokens = append(tokens, "0fF9abCD"[:length], "ABCDEF78"[8-length:])
	}
	for character := range 256 {
		for place := range 8 {
			token := []byte("0a1B2c3D")
			token[place] = byte(character)
			tokens = append(tokens, string(token), string(token[place:]), string(token[:place+1]))
		}
	}
	return tokens
}

// drawToken draws a token that is mostly good.
func drawToken(draw *rand.Rand) string {
	token := []byte(fmt.Sprintf([]string{"%08x", "%08X", "%x"}[draw.IntN(3)], draw.Uint32()>>draw.IntN(32)))
	switch draw.IntN(20) {
	case 0:
		token = nil
	case 1:
		token = append(token, "0123456789"[:draw.IntN(10)]...)
	case 2:
		token[draw.IntN(len(token))] = byte(draw.Uint32())
	}
	return string(token)
}

func hexCases(draw *rand.Rand, count int) []unitCase {
	hard := hardTokens()
	if count < len(hard) {
		draw.Shuffle(len(hard), func(i, k int) { hard[i], hard[k] = hard[k], hard[i] })
		hard = append([]string{""}, hard[:count/2]...)
	}
	var cases []unitCase
	for _, nullable := range []bool{true, false} {
		var tokens []hexToken
		for _, text := range hard {
			tokens = append(tokens, hexToken{text: text, present: true})
		}
		for len(tokens) < count {
			tokens = append(tokens, hexToken{text: drawToken(draw), present: !nullable || draw.IntN(8) > 0})
		}
		var stream Stream
		for _, token := range tokens {
			stream.Words = append(stream.Words, rtl.HexToken([]byte(token.text), token.present)...)
		}
		cases = append(cases, unitCase{
			name: fmt.Sprintf("hex_to_int nullable %v", nullable), setup: rtl.HexToInt(nullable), stream: stream,
			kernel:    func(t *testing.T, _ Stream) []uint64 { return hexKernel(t, tokens, nullable) },
			reference: func(Stream) []uint64 { return hexReference(tokens, nullable) },
		})
	}
	return cases
}

// hexKernel parses a column with the drive's kernel, which stops at each damaged token and goes on behind it.
func hexKernel(t *testing.T, tokens []hexToken, nullable bool) []uint64 {
	offsets, data := []uint32{0}, []byte(nil)
	ids, valid := make([]int64, len(tokens)), make([]byte, len(tokens))
	for i, token := range tokens {
		data = append(data, token.text...)
		offsets = append(offsets, uint32(len(data)))
		if token.present {
			valid[i] = 1
		}
	}
	results := make([]uint64, len(tokens))
	for at := 0; at < len(tokens); {
		var flags []byte
		if nullable {
			flags = valid[at:]
		}
		end := len(tokens)
		err := hextoint.Hex(ids[at:], offsets[at:], data, slices.Clone(flags))
		var damaged *hextoint.TokenError
		if errors.As(err, &damaged) {
			end = at + damaged.Index
			results[end] = hexDamaged
		} else {
			require.NoError(t, err)
		}
		// The rows before a damaged one once more, for their validity.
		if nullable {
			flags = slices.Clone(valid[at:end])
		}
		require.NoError(t, hextoint.Hex(ids[at:end], offsets[at:end+1], data, flags))
		for i := at; i < end; i++ {
			results[i] = uint64(ids[i])
			if !nullable || flags[i-at] == 1 {
				results[i] |= hexPresent
			}
		}
		at = end + 1
	}
	return results
}

func hexReference(tokens []hexToken, nullable bool) []uint64 {
	results := make([]uint64, len(tokens))
	for i, token := range tokens {
		id, ok := hextoint.Reference([]byte(token.text))
		switch {
		case nullable && (!token.present || token.text == ""):
		case ok:
			results[i] = uint64(id) | hexPresent
		default:
			results[i] = hexDamaged
		}
	}
	return results
}

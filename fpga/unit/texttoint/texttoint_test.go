package texttoint_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/texttoint"
)

// readOne reads a column of one text.
func readOne(text string) (int64, error) {
	dst := []int64{-1}
	err := texttoint.Integers(dst, []uint32{0, uint32(len(text))}, []byte(text), nil)
	return dst[0], err
}

func TestIntegers(t *testing.T) {
	zeros := strings.Repeat("0", 100)
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "+0": 0, "7": 7, "+5": 5, "-123": -123, "007": 7, "-0012": -12,
		"999999999999999999": 999999999999999999, "1000000000000000000": 1000000000000000000,
		"9223372036854775807": math.MaxInt64, "+9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64, "-9223372036854775807": -math.MaxInt64,
		zeros + "9223372036854775807": math.MaxInt64, "-" + zeros + "9223372036854775808": math.MinInt64,
		zeros: 0, "-" + zeros: 0,
	} {
		got, err := readOne(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		got, err = texttoint.Reference([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]error{
		"+": texttoint.ErrInteger, "-": texttoint.ErrInteger, "--1": texttoint.ErrInteger, "+-1": texttoint.ErrInteger,
		"1-": texttoint.ErrInteger, " 1": texttoint.ErrInteger, "1 ": texttoint.ErrInteger, "1\n": texttoint.ErrInteger,
		"1_0": texttoint.ErrInteger, "1,0": texttoint.ErrInteger, "1.0": texttoint.ErrInteger, "1e3": texttoint.ErrInteger,
		"0x1": texttoint.ErrInteger, "1:": texttoint.ErrInteger, "1/": texttoint.ErrInteger,
		"a": texttoint.ErrInteger, "\x00": texttoint.ErrInteger, "٣": texttoint.ErrInteger,
		"-٣": texttoint.ErrInteger, "−1": texttoint.ErrInteger, "99999999999999999999x": texttoint.ErrInteger,
		"9223372036854775808": texttoint.ErrRange, "-9223372036854775809": texttoint.ErrRange,
		"9223372036854775810": texttoint.ErrRange, "18446744073709551616": texttoint.ErrRange,
		"18446744073709551617": texttoint.ErrRange, "-18446744073709551616": texttoint.ErrRange,
		"1" + zeros: texttoint.ErrRange, "-1" + zeros: texttoint.ErrRange,
	} {
		_, err := readOne(text)
		require.ErrorIs(t, err, want, text)
		_, err = texttoint.Reference([]byte(text))
		require.ErrorIs(t, err, want, text)
	}
	_, err := texttoint.Reference(nil)
	require.ErrorIs(t, err, texttoint.ErrInteger)
}

func TestColumns(t *testing.T) {
	offsets, data := []uint32{1, 3, 3, 6, 7}, []byte("x12-34?")
	dst, valid := []int64{9, 9, 9, 9}, []byte{1, 1, 3, 0}
	require.NoError(t, texttoint.Integers(dst, offsets, data, valid), "the last text is a null's")
	require.Equal(t, []int64{12, 0, -34, 0}, dst)
	require.Equal(t, []byte{1, 0, 3, 0}, valid)

	valid = []byte{1, 1, 1, 1}
	err := texttoint.Integers(dst, offsets, data, valid)
	var at *bytecolumn.TextError
	require.ErrorAs(t, err, &at)
	require.Equal(t, 3, at.ValueIndex())
	require.EqualError(t, err, `text_to_int: "?": not a decimal integer (an optional sign, and digits)`)
	require.ErrorIs(t, texttoint.Integers(dst, offsets, data, nil), bytecolumn.ErrNull)
	for name, c := range proving.MalformedColumns() {
		require.ErrorIs(t, texttoint.Integers(make([]int64, 2), c.Offsets, []byte("1234"), c.Valid), bytecolumn.ErrShape,
			name)
	}
	require.NoError(t, texttoint.Integers(nil, []uint32{0}, nil, nil))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = texttoint.Integers(dst[:1], offsets[:2], data, nil) }))
}

// check compares the kernel with the reference for one text.
func check(t require.TestingT, text []byte) {
	dst, valid := []int64{-1}, []byte{1}
	err := texttoint.Integers(dst, []uint32{0, uint32(len(text))}, text, valid)
	if len(text) == 0 {
		require.NoError(t, err)
		require.Equal(t, byte(0), valid[0])
		return
	}
	want, wantErr := texttoint.Reference(text)
	if wantErr != nil {
		for _, is := range []error{texttoint.ErrInteger, texttoint.ErrRange} {
			require.Equal(t, errors.Is(wantErr, is), errors.Is(err, is), "%q: %v", text, err)
		}
		return
	}
	require.NoError(t, err, "%q", text)
	require.Equal(t, want, dst[0], "%q", text)
}

func TestKernelEqualsReference(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`[+-]?[0-9]{0,21}`), rapid.StringMatching(`[+-]?92233720368547758[0-9]{2,3}`),
		rapid.StringMatching(`[ -~]{0,4}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) { check(t, []byte(text.Draw(t, "text"))) })
}

func FuzzIntegers(f *testing.F) {
	for _, s := range []string{"", "-123", "+5", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
		"00000000000000000000000001", "1e3", "٣"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) { check(t, text) })
}

func BenchmarkIntegers(b *testing.B) {
	for _, digits := range []int{3, 9, 18} {
		b.Run(fmt.Sprintf("%d digits", digits), func(b *testing.B) {
			const n = 2048
			var data []byte
			offsets := []uint32{0}
			for i := range n {
				data = append(data, fmt.Sprintf("%0*d", digits, i%1000)...)
				offsets = append(offsets, uint32(len(data)))
			}
			dst := make([]int64, n)
			b.ResetTimer()
			for range b.N {
				if err := texttoint.Integers(dst, offsets, data, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}

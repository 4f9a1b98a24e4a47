package texttoseconds_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
	"github.com/millrace/millrace/fpga/unit/texttoseconds"
)

var utc = texttoseconds.Zone{Known: true}

// readOne reads a column of one text.
func readOne(text string, zone texttoseconds.Zone) (int64, error) {
	dst := []int64{-1}
	err := texttoseconds.Seconds(dst, []uint32{0, uint32(len(text))}, []byte(text), nil, zone)
	return dst[0], err
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]int64{
		"2021-05-21 02:11:51-07:00":           1621588311, // of Feast's issue 1576
		"2021-05-21T02:11:51-07:00":           1621588311,
		"2021-05-21 09:11:51Z":                1621588311,
		"2021-05-21 09:11:51+00":              1621588311,
		"2021-05-21 02:11:51-07":              1621588311,
		"2021-05-21 02:11:51-0700":            1621588311,
		"2021-05-21 14:41:51+05:30":           1621588311,
		"2021-05-21 14:41:51.999999999+0530":  1621588311,
		"2021-05-21T09:11:51.0Z":              1621588311,
		"1985-04-12T23:20:50.52Z":             482196050, // RFC 3339, 5.8
		"1996-12-19T16:39:57-08:00":           851042397, // RFC 3339, 5.8
		"1937-01-01T12:00:27.87+00:20":        -1041337173,
		"1970-01-01T00:00:00Z":                0,
		"1970-01-01T00:00:00-00:00":           0,
		"1969-12-31T23:59:59.999999999Z":      -1,
		"1969-12-31 23:59:59.1Z":              -1,
		"2000-02-29T00:00:00Z":                951782400,
		"0000-01-01T00:00:00+23:59":           texttoseconds.Least,
		"9999-12-31T23:59:59.999999999-23:59": texttoseconds.Greatest,
		"0000-02-29T00:00:00Z":                -62162121600,
		"1582-10-10T00:00:00Z":                -12219724800,
	} {
		for _, zone := range []texttoseconds.Zone{{}, utc, {Known: true, Offset: 3600}} {
			got, err := readOne(text, zone)
			require.NoError(t, err, text)
			require.Equal(t, want, got, text)
			got, err = texttoseconds.Reference([]byte(text), zone)
			require.NoError(t, err, text)
			require.Equal(t, want, got, text)
		}
	}
}

func TestTextsWithoutAnOffset(t *testing.T) {
	for text, want := range map[string]int64{
		"2021-05-21": 1621555200, "2021-05-21 00:00:00": 1621555200, "2021-05-21T09:11:51": 1621588311,
		"2021-05-21T09:11:51.123456789": 1621588311,
	} {
		for _, offset := range []int64{0, 19800, -25200, texttoseconds.MaxOffset, -texttoseconds.MaxOffset} {
			zone := texttoseconds.Zone{Known: true, Offset: offset}
			got, err := readOne(text, zone)
			require.NoError(t, err, text)
			require.Equal(t, want-offset, got, text)
			got, err = texttoseconds.Reference([]byte(text), zone)
			require.NoError(t, err, text)
			require.Equal(t, want-offset, got, text)
		}
		_, err := readOne(text, texttoseconds.Zone{})
		require.ErrorIs(t, err, texttoseconds.ErrNoOffset, text)
		_, err = texttoseconds.Reference([]byte(text), texttoseconds.Zone{})
		require.ErrorIs(t, err, texttoseconds.ErrNoOffset, text)
	}
}

func TestTextsThatAreNoTimes(t *testing.T) {
	form, day := texttoseconds.ErrForm, texttoseconds.ErrDay
	for text, want := range map[string]error{
		"2021": form, "2021-05": form, "21-05-2021": form, "2021/05/21": form, "20210521": form, "2021-5-21": form,
		"+2021-05-21": form, "12021-05-21": form, " 2021-05-21": form, "2021-05-21 ": form, "2021-05-21Z": form,
		"2021-05-21T": form, "2021-05-21T09": form, "2021-05-21T09:11": form, "2021-05-21T09:11Z": form,
		"2021-05-21  09:11:51": form, "2021-05-21t09:11:51Z": form, "2021-05-21T09:11:51z": form,
		"2021-05-21_09:11:51": form, "2021-05-21T09-11-51": form, "2021-05-21T09:11:51,5Z": form,
		"2021-05-21T09:11:51.Z": form, "2021-05-21T09:11:51.": form, "2021-05-21T09:11:51.1234567890Z": form,
		"2021-05-21T09:11:51 Z": form, "2021-05-21T09:11:51 +00:00": form, "2021-05-21T09:11:51UTC": form,
		"2021-05-21T09:11:51+0": form, "2021-05-21T09:11:51+000": form, "2021-05-21T09:11:51+00:0": form,
		"2021-05-21T09:11:51+00:000": form, "2021-05-21T09:11:51+00:00:00": form, "2021-05-21T09:11:51+": form,
		"2021-05-21T09:11:51-x0:00": form, "2021-05-21T09:11:51+00;00": form, "2021-05-21T09:11:51ZZ": form,
		"2021-05-21T09:11:51Z\n": form, "2021-05-21T09:11:51\n": form, "2021-05-21\n": form, "٢٠٢١-05-21": form,
		"2021-05-21T0a:11:51Z": form, "20x1-05-21": form, "2021-0x-21": form, "2021-05-2x": form,
		"2021-00-21": day, "2021-13-21": day, "2021-05-00": day, "2021-05-32": day, "2021-04-31": day, "2021-02-29": day,
		"1900-02-29": day, "2100-02-29": day, "2021-05-21T24:00:00Z": day, "2021-05-21T23:60:00Z": day,
		"2021-06-30T23:59:60Z": day, "2021-05-21T09:11:51+24:00": day, "2021-05-21T09:11:51-00:60": day,
		"2021-05-21T09:11:51+99": day,
	} {
		_, err := readOne(text, utc)
		require.ErrorIs(t, err, want, text)
		_, err = texttoseconds.Reference([]byte(text), utc)
		require.ErrorIs(t, err, want, text)
	}
}

// TestEveryDay counts the days of 10,000 years.
func TestEveryDay(t *testing.T) {
	want := int64(-62167219200)
	for at := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 10000; at = at.AddDate(0, 0, 1) {
		text := at.Format(time.DateOnly)
		got, err := readOne(text, utc)
		if err != nil || got != want {
			require.NoError(t, err, text)
			require.Equal(t, want, got, text)
		}
		want += 86400
	}
}

func TestColumns(t *testing.T) {
	data, offsets := []byte("x1970-01-011970-01-02?"), []uint32{1, 11, 11, 21, 22}
	dst, valid := []int64{9, 9, 9, 9}, []byte{1, 1, 3, 0}
	require.NoError(t, texttoseconds.Seconds(dst, offsets, data, valid, utc), "the last text is a null's")
	require.Equal(t, []int64{0, 0, 86400, 0}, dst)
	require.Equal(t, []byte{1, 0, 3, 0}, valid)
	err := texttoseconds.Seconds(dst, offsets, data, []byte{1, 1, 1, 1}, utc)
	require.EqualError(t, err, `text_to_seconds: "?": not a time of the form 2021-05-21 02:11:51-07:00`)
	err = texttoseconds.Seconds(dst, offsets, data, []byte{1, 1, 1, 1}, texttoseconds.Zone{})
	require.EqualError(t, err, `text_to_seconds: "1970-01-01": a time without an offset: say with the parameter `+
		`offset which one it has, as offset: "+00:00"`)
	require.ErrorIs(t, texttoseconds.Seconds(dst, offsets, data, nil, utc), bytecolumn.ErrNull)
	for name, c := range proving.MalformedColumns() {
		require.ErrorIs(t, texttoseconds.Seconds(make([]int64, 2), c.Offsets, []byte("1234"), c.Valid, utc),
			bytecolumn.ErrShape, name)
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = texttoseconds.Seconds(dst[:1], offsets[:2], data, nil, utc) }))
}

func TestParseOffset(t *testing.T) {
	for text, want := range map[string]int64{"Z": 0, "+00:00": 0, "-00:00": 0, "-07": -25200, "+0530": 19800,
		"+05:30": 19800, "+23:59": texttoseconds.MaxOffset, "-23:59": -texttoseconds.MaxOffset} {
		got, ok := texttoseconds.ParseOffset(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "z", "UTC", "+24:00", "-00:60", "00:00", "+1", "+1:00", "+01:0", "+01:00 "} {
		_, ok := texttoseconds.ParseOffset(text)
		require.False(t, ok, text)
	}
}

// check compares the kernel with the reference for one text.
func check(t require.TestingT, text []byte, zone texttoseconds.Zone) {
	dst, valid := []int64{-1}, []byte{1}
	err := texttoseconds.Seconds(dst, []uint32{0, uint32(len(text))}, text, valid, zone)
	if len(text) == 0 {
		require.NoError(t, err)
		require.Equal(t, byte(0), valid[0])
		return
	}
	want, wantErr := texttoseconds.Reference(text, zone)
	if wantErr != nil {
		for _, is := range []error{texttoseconds.ErrForm, texttoseconds.ErrDay, texttoseconds.ErrNoOffset} {
			require.Equal(t, errors.Is(wantErr, is), errors.Is(err, is), "%q: %v, want %v", text, err, wantErr)
		}
		return
	}
	require.NoError(t, err, "%q", text)
	require.Equal(t, want, dst[0], "%q", text)
	require.True(t, want >= texttoseconds.Least && want <= texttoseconds.Greatest)
}

func TestKernelEqualsReference(t *testing.T) {
	text := rapid.OneOf(
		rapid.StringMatching(`[0-9]{4}-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,10})?`+
			`(Z|[+-][0-2][0-9](:?[0-6][0-9])?)?)?`),
		rapid.StringMatching(`[0-9TZ:. +-]{0,30}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		zone := texttoseconds.Zone{Known: rapid.Bool().Draw(t, "known")}
		if zone.Known {
			zone.Offset = rapid.Int64Range(-texttoseconds.MaxOffset, texttoseconds.MaxOffset).Draw(t, "offset")
		}
		check(t, []byte(text.Draw(t, "text")), zone)
	})
}

func FuzzSeconds(f *testing.F) {
	for _, s := range []string{"", "2021-05-21", "2021-05-21 02:11:51-07:00", "2021-05-21T09:11:51.123456789Z",
		"0000-02-29T23:59:59+2359", "2021-02-29"} {
		f.Add([]byte(s), true, int64(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, known bool, offset int64) {
		zone := texttoseconds.Zone{Known: known}
		if known {
			zone.Offset = offset % (texttoseconds.MaxOffset + 1)
		}
		check(t, text, zone)
	})
}

func BenchmarkSeconds(b *testing.B) {
	for _, text := range []string{"2021-05-21", "2021-05-21 02:11:51-07:00", "2021-05-21T02:11:51.123456Z"} {
		b.Run(text, func(b *testing.B) {
			const n = 2048
			var data []byte
			offsets := []uint32{0}
			for range n {
				data = append(data, text...)
				offsets = append(offsets, uint32(len(data)))
			}
			dst := make([]int64, n)
			b.ResetTimer()
			for range b.N {
				if err := texttoseconds.Seconds(dst, offsets, data, nil, utc); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}

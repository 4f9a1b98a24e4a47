package texttoseconds

import (
	"errors"

	"github.com/millrace/millrace/fpga/unit/internal/bytecolumn"
)

var (
	// ErrForm says that a text does not have the form of a time.
	ErrForm = errors.New("not a time of the form 2021-05-21 02:11:51-07:00")
	// ErrDay says that a text has the form of a time, and that the calendar, a day or an offset does not have it.
	ErrDay = errors.New("no such day, time of day or offset")
	// ErrNoOffset says that a text names no offset, and that the zone is not known either.
	ErrNoOffset = errors.New("a time without an offset: say with the parameter offset which one it has, as offset: " +
		"\"+00:00\"")
)

// Zone is the offset from UTC of texts that name none. The zero value is no offset: such texts are an error.
type Zone struct {
	Known  bool
	Offset int64 // Seconds by which local times are ahead of UTC, which are at most MaxOffset, or negative as many.
}

// MaxOffset is the greatest offset in seconds: 23:59.
const MaxOffset = 23*secondsOfHour + 59*secondsOfMinute

// Least and Greatest bound the results: those of the first and the last second with the greatest offsets.
const (
	Least    = -62167219200 - MaxOffset
	Greatest = 253402300799 + MaxOffset
)

const (
	secondsOfMinute = 60
	secondsOfHour   = 60 * secondsOfMinute
	secondsOfDay    = 24 * secondsOfHour
)

// Seconds reads a column of len(dst) texts, text i being data[offsets[i]:offsets[i+1]]. An empty text becomes a null.
// valid is nil, or has a byte a text, 0 for a null, whose dst is 0. On an error dst and valid are undefined.
func Seconds(dst []int64, offsets []uint32, data, valid []byte, zone Zone) error {
	return bytecolumn.Integers("text_to_seconds", dst, offsets, data, valid, func(text []byte) (int64, error) {
		return parse(text, zone)
	})
}

// ParseOffset returns the seconds of an offset as texts name it: Z, -07:00, -0700 or -07. ok is false for another text.
func ParseOffset(text string) (seconds int64, ok bool) {
	seconds, err := parseOffset([]byte(text))
	return seconds, err == nil
}

// digits reads numbers of two digits, and remembers whether one of them was not of digits.
type digits struct{ bad bool }

func (d *digits) two(tens, units byte) int64 {
	tens, units = tens-'0', units-'0'
	if tens > 9 || units > 9 {
		d.bad = true
	}
	return int64(tens)*10 + int64(units)
}

// Lengths of the parts of a text.
const (
	dateLength = len("2021-05-21")
	timeLength = len("2021-05-21 02:11:51")
	maxDigits  = 9 // of a fraction
)

// parse returns the seconds of a text that is not empty.
func parse(text []byte, zone Zone) (int64, error) {
	if len(text) < dateLength || text[4] != '-' || text[7] != '-' {
		return 0, ErrForm
	}
	var d digits
	year := 100*d.two(text[0], text[1]) + d.two(text[2], text[3])
	month, day := d.two(text[5], text[6]), d.two(text[8], text[9])
	var hour, minute, second int64
	rest := text[dateLength:]
	if len(rest) > 0 {
		if len(text) < timeLength || text[10] != 'T' && text[10] != ' ' || text[13] != ':' || text[16] != ':' {
			return 0, ErrForm
		}
		hour, minute, second = d.two(text[11], text[12]), d.two(text[14], text[15]), d.two(text[17], text[18])
		var err error
		if rest, err = withoutFraction(text[timeLength:]); err != nil {
			return 0, err
		}
	}
	if d.bad {
		return 0, ErrForm
	}
	offset := zone.Offset
	if len(rest) > 0 {
		var err error
		if offset, err = parseOffset(rest); err != nil {
			return 0, err
		}
	}
	if month < 1 || month > 12 || day < 1 || day > daysOfMonth(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, ErrDay
	}
	if len(rest) == 0 && !zone.Known {
		return 0, ErrNoOffset
	}
	return daysSince1970(year, month, day)*secondsOfDay + hour*secondsOfHour + minute*secondsOfMinute + second - offset,
		nil
}

// withoutFraction returns what stands behind the fraction of a second, if there is one.
func withoutFraction(text []byte) ([]byte, error) {
	if len(text) == 0 || text[0] != '.' {
		return text, nil
	}
	n := 1
	for n < len(text) && text[n]-'0' <= 9 {
		n++
	}
	if n == 1 || n > 1+maxDigits {
		return nil, ErrForm
	}
	return text[n:], nil
}

// parseOffset returns the seconds of an offset.
func parseOffset(text []byte) (int64, error) {
	if len(text) == 1 && text[0] == 'Z' {
		return 0, nil
	}
	if len(text) < len("-07") || text[0] != '+' && text[0] != '-' {
		return 0, ErrForm
	}
	var d digits
	hour, minute := d.two(text[1], text[2]), int64(0)
	switch rest := text[3:]; {
	case len(rest) == 0:
	case len(rest) == 2:
		minute = d.two(rest[0], rest[1])
	case len(rest) == 3 && rest[0] == ':':
		minute = d.two(rest[1], rest[2])
	default:
		return 0, ErrForm
	}
	switch {
	case d.bad:
		return 0, ErrForm
	case hour > 23 || minute > 59:
		return 0, ErrDay
	}
	seconds := hour*secondsOfHour + minute*secondsOfMinute
	if text[0] == '-' {
		return -seconds, nil
	}
	return seconds, nil
}

// daysOfMonth returns the number of days of a month, 1 to 12.
func daysOfMonth(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysSince1970 returns the number of days from 1970-01-01 to a day of a year from 0 on. Years that begin with March
// end with the day that leap years add, so that the days before a month are the same in each of them.
func daysSince1970(year, month, day int64) int64 {
	const (
		daysOf400Years = 146097
		before1970     = 719468 // The days from March 1 of the year 0 to 1970-01-01.
	)
	if month > 2 {
		month -= 3
	} else {
		month += 9
		year--
	}
	year += 400 // so that the year before 0 divides as the others do
	leapDays := year/4 - year/100 + year/400
	daysBeforeMonth := (153*month + 2) / 5 // 31, 30, 31, 30, 31 days, twice, and then 31 and the rest
	return 365*year + leapDays + daysBeforeMonth + day - 1 - before1970 - daysOf400Years
}

package texttoseconds

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// form is the form of the texts: year, month, day; hour, minute, second; the offset's sign, hours and minutes.
var form = regexp.MustCompile(`^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?` +
	`(Z|([+-])(\d\d)(?::?(\d\d))?)?)?\z`)

// Reference returns the seconds since 1970 of a text. The error wraps ErrForm, ErrDay or ErrNoOffset; an empty text is
// not a time.
func Reference(text []byte, zone Zone) (int64, error) {
	parts := form.FindStringSubmatch(string(text))
	if parts == nil {
		return 0, fmt.Errorf("%q: %w", text, ErrForm)
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(parts[i]) // a part that is absent is 0
		return n
	}
	at := time.Date(number(1), time.Month(number(2)), number(3), number(4), number(5), number(6), 0, time.UTC)
	if at.Year() != number(1) || int(at.Month()) != number(2) || at.Day() != number(3) || at.Hour() != number(4) ||
		at.Minute() != number(5) || at.Second() != number(6) || number(9) > 23 || number(10) > 59 {
		return 0, fmt.Errorf("%q: %w", text, ErrDay)
	}
	offset := time.Duration(number(9))*time.Hour + time.Duration(number(10))*time.Minute
	switch {
	case parts[8] == "-":
		offset = -offset
	case parts[7] == "" && !zone.Known:
		return 0, fmt.Errorf("%q: %w", text, ErrNoOffset)
	case parts[7] == "":
		offset = time.Duration(zone.Offset) * time.Second
	}
	return at.Add(-offset).Unix(), nil
}

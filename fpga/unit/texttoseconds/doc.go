// Package texttoseconds is the unit text_to_seconds: the text of a time becomes the seconds since 1970-01-01 00:00:00
// UTC.
//
// # Overview
//
// A text is of one of the forms
//
//	2021-05-21
//	2021-05-21 02:11:51
//	2021-05-21T02:11:51.123456789-07:00
//
// which are those of RFC 3339 and of ISO 8601's extended format with seconds:
//
//   - a date of the Gregorian calendar, also before 1582, of the years 0000 to 9999; alone it is the day's midnight;
//   - behind the date, an upper-case T or one space, and hours, minutes and seconds of two digits each, at most
//     23:59:59;
//   - behind the seconds, a point and a fraction of 1 to 9 digits. The result is rounded towards minus infinity, which
//     drops the fraction, also before 1970;
//   - behind the time of day, the offset from UTC: Z, or a sign with two digits of hours, and with minutes behind them,
//     with a colon or without: -07:00, -0700, -07. An offset is at most 23:59.
//
// [Zone] is the offset of a text that names none, a date alone too. Nothing else is read: no space at an end, no name
// of a zone, no leap second. An empty text is a null.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// Seconds returns a *bytecolumn.TextError, which names the text and its place, and wraps ErrForm, ErrDay, ErrNoOffset
// or bytecolumn.ErrNull. An error that wraps bytecolumn.ErrShape says that the column itself is not well formed.
//
// # Debugging
//
// Reference is the definition, by package regexp and the calendar of package time.
package texttoseconds

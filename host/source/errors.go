package source

import (
	"errors"
	"fmt"
	"time"
)

// ChangedError says that a source no longer has the pinned identity: it was written again, or another object lies at
// the URI.
type ChangedError struct {
	Name          string
	Pinned, Found Identity // Found is zero where the server did not name its identity now
}

func (e *ChangedError) Error() string {
	found := "the server has something else now"
	if !e.Found.IsZero() {
		found = "found " + e.Found.String()
	}
	return fmt.Sprintf("%s changed: pinned %s, %s: submit the job again over the new data, or put the old data back",
		e.Name, e.Pinned, found)
}

// NotFoundError says that nothing lies at the URI.
type NotFoundError struct {
	Name string
	Err  error // what the server or the system said, or nil
}

func (e *NotFoundError) Error() string { return withCause(e.Name+" does not exist", e.Err) }

// Unwrap returns what the server or the system said.
func (e *NotFoundError) Unwrap() error { return e.Err }

// ForbiddenError says that the server refused the credentials, or that it requires credentials and got none.
type ForbiddenError struct {
	Name   string
	Status int // Status is that of HTTP.
	// Signed says that the URL has a query, as URLs that are signed for a limited time have.
	Signed bool
	Err    error
}

func (e *ForbiddenError) Error() string {
	advice := "give credentials that may read it"
	if e.Signed {
		advice = "the signature in its query may have ended, or be of another object: sign the URL again"
	}
	return withCause(fmt.Sprintf("%s: access refused (status %d): %s", e.Name, e.Status, advice), e.Err)
}

// Unwrap returns what the server said.
func (e *ForbiddenError) Unwrap() error { return e.Err }

// ThrottledError says that the server asked for fewer requests, or could not serve this one. A later attempt may
// succeed.
type ThrottledError struct {
	Name   string
	Status int           // Status is that of HTTP.
	After  time.Duration // The server asked to wait for this time, 0 if the server did not say.
	Err    error
}

func (e *ThrottledError) Error() string {
	s := fmt.Sprintf("%s: the server asks for fewer requests (status %d)", e.Name, e.Status)
	if e.After > 0 {
		s += fmt.Sprintf(", and to wait %s", e.After)
	}
	return withCause(s, e.Err)
}

// Unwrap returns what the server said.
func (e *ThrottledError) Unwrap() error { return e.Err }

// TruncatedError says that fewer or more bytes came than were promised. A later attempt may succeed.
type TruncatedError struct {
	Name      string
	Offset    int64 // first byte that was asked for
	Want, Got int64 // bytes; Got exceeds Want by 1 where the answer did not end
	Err       error // the error that ended the answer, or nil
}

func (e *TruncatedError) Error() string {
	if e.Got > e.Want {
		return fmt.Sprintf("%s: bytes %d+%d: the answer is longer than that", e.Name, e.Offset, e.Want)
	}
	return withCause(fmt.Sprintf("%s: bytes %d+%d: the answer ended after %d bytes", e.Name, e.Offset, e.Want, e.Got),
		e.Err)
}

// Unwrap returns what ended the answer.
func (e *TruncatedError) Unwrap() error { return e.Err }

// CorruptError says that bytes do not have the checksum that came with them. A later attempt may succeed.
type CorruptError struct {
	Name        string
	Offset, Len int64
	Want, Got   uint32 // CRC32C
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: bytes %d+%d: checksum %08x, promised was %08x", e.Name, e.Offset, e.Len, e.Got, e.Want)
}

// AnswerError says that an answer contradicts its request or itself: another range, another size, or a required
// header that is missing. The server, or a proxy before it, is at fault.
type AnswerError struct {
	Name    string
	Problem string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("%s: the server's answer makes no sense: %s", e.Name, e.Problem)
}

// UnsupportedError says that a server lacks what reading a partition needs.
type UnsupportedError struct {
	Name   string
	Lacks  string
	Advice string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: %s: %s", e.Name, e.Lacks, e.Advice)
}

// UnreachableError says that no answer came: no connection, a reset, or a timeout. A later attempt may succeed.
type UnreachableError struct {
	Name string
	Err  error
}

func (e *UnreachableError) Error() string { return withCause(e.Name+" cannot be reached", e.Err) }

// Unwrap returns what the network said.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Temporary reports whether a later attempt may succeed after this error, and returns how long the server asked to
// wait.
func Temporary(err error) (after time.Duration, temporary bool) {
	var (
		throttled   *ThrottledError
		truncated   *TruncatedError
		corrupt     *CorruptError
		unreachable *UnreachableError
	)
	switch {
	case errors.As(err, &throttled):
		return throttled.After, true
	case errors.As(err, &truncated), errors.As(err, &corrupt), errors.As(err, &unreachable):
		return 0, true
	}
	return 0, false
}

// Concerns reports whether an error says that a source could not be read, or that it has changed.
func Concerns(err error) bool {
	var (
		changed     *ChangedError
		missing     *NotFoundError
		forbidden   *ForbiddenError
		answer      *AnswerError
		unsupported *UnsupportedError
	)
	_, temporary := Temporary(err)
	return temporary || errors.As(err, &changed) || errors.As(err, &missing) || errors.As(err, &forbidden) ||
		errors.As(err, &answer) || errors.As(err, &unsupported)
}

// withCause appends a cause to a text, unless the cause is nil.
func withCause(s string, err error) string {
	if err == nil {
		return s
	}
	return s + ": " + err.Error()
}

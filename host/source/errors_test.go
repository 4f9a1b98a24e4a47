package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/host/source"
)

// TestErrorsSayWhatToDo checks the text of every type of error, whether another attempt may help and after which time,
// and that an error whose text ends with a cause wraps it.
func TestErrorsSayWhatToDo(t *testing.T) {
	cause := io.ErrUnexpectedEOF
	old := source.Identity{Kind: source.ByETag, Value: `"a"`, Size: 4}
	other := source.Identity{Kind: source.ByETag, Value: `"b"`, Size: 5}
	for _, c := range []struct {
		err       error
		text      string
		temporary bool
		after     time.Duration
	}{
		{&source.ChangedError{Name: "s3://b/k", Pinned: old, Found: other},
			`s3://b/k changed: pinned etag:4:"a", found etag:5:"b": submit the job again over the new data, or put the ` +
				`old data back`, false, 0},
		{&source.ChangedError{Name: "k", Pinned: old}, `k changed: pinned etag:4:"a", the server has something else now: ` +
			`submit the job again over the new data, or put the old data back`, false, 0},
		{&source.NotFoundError{Name: "k", Err: cause}, "k does not exist: unexpected EOF", false, 0},
		{&source.ForbiddenError{Name: "k", Status: 403, Err: cause},
			"k: access refused (status 403): give credentials that may read it: unexpected EOF", false, 0},
		{&source.ThrottledError{Name: "k", Status: 503, After: 2 * time.Second, Err: cause},
			"k: the server asks for fewer requests (status 503), and to wait 2s: unexpected EOF", true, 2 * time.Second},
		{&source.ThrottledError{Name: "k", Status: 429}, "k: the server asks for fewer requests (status 429)", true, 0},
		{&source.TruncatedError{Name: "k", Offset: 3, Want: 5, Got: 2, Err: cause},
			"k: bytes 3+5: the answer ended after 2 bytes: unexpected EOF", true, 0},
		{&source.TruncatedError{Name: "k", Offset: 3, Want: 5, Got: 6}, "k: bytes 3+5: the answer is longer than that", true,
			0},
		{&source.CorruptError{Name: "k", Offset: 3, Len: 5, Want: 1, Got: 2},
			"k: bytes 3+5: checksum 00000002, promised was 00000001", true, 0},
		{&source.AnswerError{Name: "k", Problem: "another range"}, "k: the server's answer makes no sense: another range",
			false, 0},
		{&source.UnsupportedError{Name: "k", Lacks: "no ranges", Advice: "copy it"}, "k: no ranges: copy it", false, 0},
		{&source.UnreachableError{Name: "k", Err: cause}, "k cannot be reached: unexpected EOF", true, 0},
	} {
		wrapped := fmt.Errorf("open: %w", c.err)
		assert.EqualError(t, c.err, c.text)
		after, temporary := source.Temporary(wrapped)
		assert.Equal(t, c.temporary, temporary, c.text)
		assert.Equal(t, c.after, after, c.text)
		assert.Equal(t, strings.HasSuffix(c.text, cause.Error()), errors.Is(wrapped, cause), c.text)
	}
	_, temporary := source.Temporary(context.Canceled)
	assert.False(t, temporary)
}

package format

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnsupportedErrorsNameTheThingOnce(t *testing.T) {
	for want, e := range map[string]UnsupportedError{
		"codec LZO is not supported":                   {"codec", LZO.String()},
		"codec 200 is not supported":                   {"codec", Codec(200).String()},
		"encoding 31 is not supported":                 {"encoding", Encoding(31).String()},
		"encoding 31 of levels is not supported":       {"encoding", Encoding(31).String() + " of levels"},
		"encryption encrypted column is not supported": {"encryption", "encrypted column"},
		"page type 9 is not supported":                 {"page type", PageType(9).String()},
		"encoding PLAIN of BOOLEAN is not supported":   {"encoding", Plain.String() + " of BOOLEAN"},
	} {
		assert.EqualError(t, &e, want)
	}
}

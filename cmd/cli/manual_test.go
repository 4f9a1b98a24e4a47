package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRoff(t *testing.T) {
	assert.Equal(t, `\&.ext a\-b \en`, escapeRoff(".ext a-b \\n"))
	assert.Equal(t, `\&'quoted'`, escapeRoff("'quoted'"))
	assert.Equal(t, "JSON of it", lowerFirst("JSON of it"))
	assert.Equal(t, "a drive", lowerFirst("A drive"))
}

package volume

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/goldenfile"
)

// TestFormOfAMember holds the header blocks that a member gets: one ustar header, and a pax header before it where the
// name needs one. GNU tar and bsdtar read both (systemtar_test.go).
func TestFormOfAMember(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	goldenfile.Bytes(t, "testdata/member.v1.hex", encodeHeader("day/part-00000.parquet", 1<<30, at))
	goldenfile.Bytes(t, "testdata/longname.v1.hex", encodeHeader(strings.Repeat("folder/", 20)+"é.parquet", 1<<40,
		at))
}

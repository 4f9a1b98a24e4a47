package arrowipc

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestFormOfAFile fixes the schema of Millrace's Arrow files, metadata included, and reads a file that an earlier
// build wrote. How Arrow's messages are laid out between the tensors is free.
func TestFormOfAFile(t *testing.T) {
	s := schemas()["lists weighted"]
	m := batch(t, s, 2, 5)
	written := write(t, s, m)
	r, err := ipc.NewFileReader(bytes.NewReader(written))
	require.NoError(t, err)
	defer r.Close()
	rec, err := r.RecordBatch(0)
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/schema.v1.txt", fmt.Sprintln(r.Schema())+fmt.Sprintln(rec.NumRows(), "row"))

	if goldenfile.Updating() {
		goldenfile.Bytes(t, "testdata/file.v1.hex", written)
	}
	kept := read(t, s, goldenfile.Read(t, "testdata/file.v1.hex"))
	require.Len(t, kept, 1)
	assert.Empty(t, tensor.Diff(m, kept[0]))
}

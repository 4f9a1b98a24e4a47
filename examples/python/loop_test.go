package python

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/examples/storagenodetest"
)

type impression struct {
	Clicked int32   `parquet:"clicked"`
	Price   float32 `parquet:"price"`
	Item    int64   `parquet:"item"`
}

const printed = `200 rows, dense [200, 1]
200 rows, dense [200, 1]
100 rows, dense [100, 1]
500 rows, 0.25 clicked
`

func TestLoop(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("this example runs in CI: install python3")
		}
		t.Skip("install python3 to run this example")
	}
	rows := make([]impression, 500)
	for i := range rows {
		rows[i] = impression{Price: float32(i % 50), Item: int64(i)}
		if i%4 == 0 {
			rows[i].Clicked = 1
		}
	}
	var file bytes.Buffer
	require.NoError(t, parquet.Write(&file, rows))
	service, err := storagenodetest.Start(t.Context(), t.TempDir(),
		storagenodetest.Partition{Name: "day-0.parquet", Bytes: int64(file.Len()), Content: &file})
	require.NoError(t, err)
	defer func() { assert.NoError(t, service.Close()) }()

	source, err := filepath.Abs("../../sdk/python/src")
	require.NoError(t, err)
	loop := exec.CommandContext(t.Context(), python, "loop.py", service.URL())
	loop.Env = append(os.Environ(), "PYTHONPATH="+source, "PYTHONDONTWRITEBYTECODE=1")
	var stderr bytes.Buffer
	loop.Stderr = &stderr
	out, err := loop.Output()
	require.NoError(t, err, stderr.String())
	assert.Equal(t, printed, string(out))
}

package partitions

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/partition"
)

// TestFormOfTheSums holds sums.json, which a node of a later version reads when it starts.
func TestFormOfTheSums(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	openSums(dir, log).put("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d", "day/part-0.parquet", []byte{0xab, 0xcd})
	written, err := os.ReadFile(filepath.Join(dir, "sums.json"))
	require.NoError(t, err)
	goldenfile.Text(t, "testdata/sums.json", string(written))
	assert.Equal(t, []byte{0xab, 0xcd}, openSums("testdata", log).get("0e5f0a3c-7a5b-5a0e-8d3c-2f6f8a9b1c2d",
		"day/part-0.parquet"))
}

// TestFormOfARange holds the answer to a request for a range of a partition, with the checksum behind the bytes, as a
// worker of another build reads it from the connection.
func TestFormOfARange(t *testing.T) {
	row := strings.Repeat("0123456789", text.BinaryRow)[:text.BinaryRow-1] + "\x00"
	p, err := partition.Open(t.Context(), "day.bin", strings.NewReader(row), text.BinaryRow, program.CriteoBinary,
		partition.Options{})
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil // it changes
		assert.NoError(t, new(Store).serveRange(w, nil, p, r.Header.Get("Range")))
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: n0\r\nRange: bytes=2-5\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	goldenfile.Text(t, "testdata/range.v1.txt", strings.ReplaceAll(string(answer), "\r\n", "\n"))
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "2345", string(body))
}

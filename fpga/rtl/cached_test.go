package rtl

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cached returns what work makes, and keeps it in the user's cache folder from one run of the tests to the next. The
// name holds the digest of everything that work depends on, so that only what changed takes its time again. What work
// says is not final is not kept.
func cached(t *testing.T, name string, work func() (made []byte, final bool)) []byte {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		made, _ := work()
		return made
	}
	path := filepath.Join(cache, "millrace", "rtl", name)
	if packed, err := os.ReadFile(path); err == nil {
		if reader, err := gzip.NewReader(bytes.NewReader(packed)); err == nil {
			if made, err := io.ReadAll(reader); err == nil {
				return made
			}
		}
	}
	made, final := work()
	if !final {
		return made
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err = writer.Write(made)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, packed.Bytes(), 0o600))
	return made
}

// cachedProof returns what prove says of the sources in a folder; see cached. The script is what prove has the tools
// do.
func cachedProof(t *testing.T, tools []string, folder, script string, prove func() (says string, final bool)) string {
	t.Helper()
	key := sha256.New()
	for _, path := range tools {
		info, err := os.Stat(path)
		require.NoError(t, err)
		fmt.Fprintf(key, "%s %d %d\n", path, info.Size(), info.ModTime().Unix())
	}
	fmt.Fprintln(key, script)
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".sv") {
			return err
		}
		text, err := os.ReadFile(path)
		relative, _ := filepath.Rel(folder, path)
		fmt.Fprintf(key, "%s %d\n%s", relative, len(text), text)
		return err
	}))
	return string(cached(t, fmt.Sprintf("proof-%x.gz", key.Sum(nil)[:16]), func() ([]byte, bool) {
		says, final := prove()
		return []byte(says), final
	}))
}

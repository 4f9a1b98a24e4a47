package s3_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/shared"
)

// startGateway starts versitygw over a folder and returns its URL. .ci/test builds the program, from tools/s3server.
func startGateway(t *testing.T) (endpoint string) {
	t.Helper()
	program := os.Getenv("MILLRACE_S3_SERVER")
	if program == "" {
		t.Skip("MILLRACE_S3_SERVER names no versitygw: the tier s3 of make test builds one")
	}
	if _, err := os.Stat(program); err != nil {
		shared.Missing(t, "MILLRACE_S3_SERVER: %v", err)
	}
	clearEnvironment(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "gateway")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "gateway-secret")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	folder, kept, metadata := t.TempDir(), t.TempDir(), t.TempDir()
	cmd := exec.Command(program, "--port", address, "--access", "gateway", "--secret", "gateway-secret", "--quiet",
		"posix", "--versioning-dir", kept, "--sidecar", metadata, folder)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(said.String())
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, time.Minute, 20*time.Millisecond)
	return "http://" + address
}

// TestGateway lists and reads objects of versitygw, a foreign server of S3, which verifies signatures and keeps
// versions. Without MILLRACE_S3_SERVER it is skipped; the tier s3 of make test sets it and checks that the test ran.
func TestGateway(t *testing.T) {
	ctx := context.Background()
	endpoint := startGateway(t)
	client, err := minio.New(strings.TrimPrefix(endpoint, "http://"), &minio.Options{
		Creds: credentials.NewEnvAWS(), Region: "us-east-1",
	})
	require.NoError(t, err)
	require.NoError(t, client.MakeBucket(ctx, "rows", minio.MakeBucketOptions{}))
	put := func(key string, b []byte) {
		_, err := client.PutObject(ctx, "rows", key, bytes.NewReader(b), int64(len(b)), minio.PutObjectOptions{})
		require.NoError(t, err)
	}
	large := bytes.Repeat([]byte(contents), 200_000)
	put("days/day_0.parquet", large)
	put("days/day_1 +%.parquet", []byte(contents))
	put("days/more/day_2.parquet", []byte(contents))
	put("nights/x", []byte{1})

	store := newStore(t, endpoint)
	objects, err := store.List(ctx, source.ParseLocation("s3://rows/days/day_*.parquet"))
	require.NoError(t, err)
	assert.Equal(t, []source.Object{
		{Location: source.ParseLocation("s3://rows/days/day_0.parquet"), Size: int64(len(large))},
		{Location: source.ParseLocation("s3://rows/days/day_1 +%.parquet"), Size: int64(len(contents))},
	}, objects)
	objects, err = store.List(ctx, source.ParseLocation("s3://rows/*/*/"))
	require.NoError(t, err)
	assert.Len(t, objects, 1)

	src, err := store.Open(ctx, source.ParseLocation("s3://rows/days/day_0.parquet"), source.Identity{})
	require.NoError(t, err)
	cache, err := source.NewCache(source.Options{})
	require.NoError(t, err)
	r := cache.NewReader(src)
	r.ExpectAll()
	got, err := io.ReadAll(io.NewSectionReader(r, 0, src.Size()))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(large, got))
	require.NoError(t, r.Close())

	put("days/day_0.parquet", []byte("another"))
	var changed *source.ChangedError
	_, err = src.ReadAt(ctx, make([]byte, 3), 0)
	require.ErrorAs(t, err, &changed)
	_, err = store.Open(ctx, source.ParseLocation("s3://rows/days/day_0.parquet"), src.Identity())
	require.ErrorAs(t, err, &changed)

	require.NoError(t, client.EnableVersioning(ctx, "rows"))
	put("days/day_3.parquet", []byte(contents))
	src, err = store.Open(ctx, source.ParseLocation("s3://rows/days/day_3.parquet"), source.Identity{})
	require.NoError(t, err)
	assert.Equal(t, source.ByVersion, src.Identity().Kind)
	put("days/day_3.parquet", []byte("another"))
	b := make([]byte, 3)
	_, err = src.ReadAt(ctx, b, 10)
	require.NoError(t, err, "the version that was pinned is kept")
	assert.Equal(t, "abc", string(b))

	var missing *source.NotFoundError
	_, err = store.Open(ctx, source.ParseLocation("s3://rows/days/none"), source.Identity{})
	require.ErrorAs(t, err, &missing)
	_, err = store.List(ctx, source.ParseLocation("s3://none/*"))
	require.ErrorAs(t, err, &missing)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	var forbidden *source.ForbiddenError
	_, err = newStore(t, endpoint).List(ctx, source.ParseLocation("s3://rows/*"))
	require.ErrorAs(t, err, &forbidden)
	assert.ErrorContains(t, err, "SignatureDoesNotMatch")
}

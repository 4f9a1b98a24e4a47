package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/host/deploy"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
)

// imageFile writes an image that is not the stock one, signed by key if there is one.
func imageFile(t *testing.T, key ed25519.PrivateKey) (path string, id image.ID) {
	t.Helper()
	b, err := image.Stock()
	require.NoError(t, err)
	m, err := image.Parse(b)
	require.NoError(t, err)
	m.Spec.Partition.Slots = 7
	b, err = image.Build(&m.Spec)
	require.NoError(t, err)
	m, err = image.Parse(b)
	require.NoError(t, err)
	if key != nil {
		b, err = m.Sign(key)
		require.NoError(t, err)
	}
	path = filepath.Join(t.TempDir(), "new.mimg")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path, m.ID
}

// imageOf is the image that a drive in memory runs.
func imageOf(t *testing.T, uri string) image.ID {
	t.Helper()
	dev, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	r, err := dev.ImageReport(t.Context())
	require.NoError(t, err)
	s, _ := r.Active()
	return s.Image
}

// TestANodeKeepsItsDrivesAtAnImage: with a job at work all the while, whose mini-batches stay what they are.
func TestANodeKeepsItsDrivesAtAnImage(t *testing.T) {
	files := map[string][]byte{"a.parquet": partition(t, 1, 900)}
	uris := []string{fill(t, "mem", files), fill(t, "mem", map[string][]byte{"b.parquet": partition(t, 2, 100)})}
	path, want := imageFile(t, nil)
	f := start(t, func(c *Config) { c.Image = ImageConfig{File: path, Policy: "off"} }, uris...)
	for _, uri := range uris {
		f.wait("the image", func() bool { return imageOf(t, uri) == want })
	}

	j := f.prepare(dataset.Options{SplitBatches: 4}, "a.parquet")
	frames := truth(t, files, j)
	ctx, cancel := context.WithCancel(t.Context())
	var fetched, turnedAway atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for s := range j.plan.All() {
				for n := s.FirstNumber; n < s.FirstNumber+uint64(s.MiniBatches) && ctx.Err() == nil; {
					status, b, _, err := f.try(ctx, f.link(j, "d0", n, s.FirstNumber+uint64(s.MiniBatches)))
					switch {
					case err != nil:
					case status == http.StatusOK:
						assert.True(t, bytes.Equal(frames[n], b), "mini-batch %d", n)
						fetched.Add(1)
						n++
					default:
						assert.Equal(t, http.StatusServiceUnavailable, status, "%s", b)
						turnedAway.Add(1)
						time.Sleep(time.Millisecond)
					}
				}
			}
		}
	}()
	f.wait("work", func() bool { return fetched.Load() > 10 })

	// Somebody takes the drive back to the stock image. While the job holds it, that is refused; so it is drained as the node does.
	other, err := sdk.Open(t.Context(), uris[0], sdk.DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	f.wait("a refusal", func() bool {
		err = other.ActivateImage(t.Context(), 0)
		return err != nil
	})
	require.ErrorIs(t, err, image.ErrInUse)
	x := &images{agent: f.Agent, policy: image.PolicyOff}
	d0 := x.open()[0]
	require.NoError(t, d0.Drain(t.Context()))
	require.NoError(t, other.ActivateImage(t.Context(), 0))
	require.NoError(t, d0.Resume(t.Context()))
	f.wait("the image again", func() bool { return imageOf(t, uris[0]) == want })
	more := fetched.Load() + 30
	f.wait("work again", func() bool { return fetched.Load() > more })
	cancel()
	<-done
	t.Logf("%d mini-batches, turned away %d times", fetched.Load(), turnedAway.Load())
}

func TestANodeLeavesADriveThatDoesNotTrustTheImage(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	path, want := imageFile(t, key)
	files := map[string][]byte{"a.parquet": partition(t, 1, 100)}
	uri := fill(t, "mem", files)
	before := imageOf(t, uri)
	f := start(t, func(c *Config) { c.Image = ImageConfig{File: path, Policy: "require"} }, uri)
	x := &images{agent: f.Agent, policy: image.PolicyRequire}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	x.image, err = image.Parse(b)
	require.NoError(t, err)
	f.wait("the drive", func() bool { return len(x.open()) == 1 })
	r, err := deploy.New(deploy.Options{Image: b}).Run(t.Context(), x.open())
	require.ErrorContains(t, err, "the drive does not trust key")
	assert.Equal(t, deploy.Failed, r.Drives[0].State)
	assert.Equal(t, before, imageOf(t, uri))
	assert.NotEqual(t, before, want)
	j := f.prepare(dataset.Options{})
	assert.Equal(t, truth(t, files, j), f.epoch(j, "d0"), "it goes on with its work")

	pub := key.Public().(ed25519.PublicKey)
	require.NoError(t, x.trusted(&image.Report{Keys: []image.KeyID{image.KeyOf(pub)}}))
	require.Error(t, x.trusted(&image.Report{Keys: []image.KeyID{image.KeyOf(pub)}, RevokedKeys: []image.KeyID{image.KeyOf(pub)}}))
	x.policy = image.PolicyWarn
	require.NoError(t, x.trusted(&image.Report{}))
}

func TestImagesThatAConfigurationCannotName(t *testing.T) {
	unsigned, _ := imageFile(t, nil)
	damaged := filepath.Join(t.TempDir(), "bad.mimg")
	require.NoError(t, os.WriteFile(damaged, []byte("no image"), 0o600))
	for path, says := range map[string]string{
		unsigned: "is not signed", damaged: "damaged image", t.TempDir(): "no regular file", filepath.Join(t.TempDir(), "none"): "no such file",
	} {
		c := DefaultConfig()
		c.Name, c.Listen, c.Image.File = "n0", []string{"127.0.0.1:0"}, path
		_, err := Start(t.Context(), c, Options{})
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, says)
	}
}

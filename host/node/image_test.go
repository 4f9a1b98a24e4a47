package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/dataset"
)

// anImage is an image that does what the stock image does and is another.
func anImage(t *testing.T) *image.Image {
	t.Helper()
	return stocktest.Changed(t, func(s *image.Spec) { s.Partition.Slots++ })
}

func put(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// imagesOf returns the images that the drives run, as the node describes them.
func (f *fixture) imagesOf() []string {
	f.t.Helper()
	r, err := f.node.Describe(f.t.Context(), &apiv1.DescribeRequest{})
	require.NoError(f.t, err)
	var list []string
	for _, d := range r.Status.Drives {
		list = append(list, d.Image)
	}
	return list
}

// rollOut starts a node whose drives d0 and d1 are to get an image, while a job runs on both, and waits until they have
// it. The job's clients get every mini-batch byte for byte.
func rollOut(t *testing.T, m *image.Image, j *nodetest.Job, want [][]byte, uris []string) *fixture {
	t.Helper()
	f := start(t, func(c *Config) {
		c.Image = ImageConfig{File: put(t, "new.mimg", m.Bytes()), ID: m.ID.String()}
		c.DrainTime = Duration(50 * time.Millisecond)
	}, uris...)
	_, err := f.node.Prepare(t.Context(), j.PrepareRequest)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for _, drive := range []string{"d0", "d1"} {
		wg.Go(func() {
			for n := uint64(0); n < uint64(len(want)) && assert.NoError(t, ctx.Err(), "mini-batch %d of %s", n, drive); {
				status, b, _, err := f.try(ctx, f.link(j, drive, n, n+4))
				if err == nil && status == http.StatusOK {
					assert.True(t, bytes.Equal(want[n], b), "mini-batch %d", n)
					n++
				}
			}
		})
	}
	wg.Wait()
	f.wait("the rollout", func() bool {
		list := f.imagesOf()
		return list[0] == m.ID.String() && list[1] == m.ID.String() && f.state("d0") == "ready" &&
			f.state("d1") == "ready"
	})
	return f
}

// TestDrivesAreKeptAtTheImage checks that an image is rolled out while a job runs, that the job's clients get every
// mini-batch byte for byte, and that a drive that starts with the image is left alone.
func TestDrivesAreKeptAtTheImage(t *testing.T) {
	files := content(t)
	m := anImage(t)
	uris := []string{fill(t, "mem", files), fill(t, "mem", files)}
	f := start(t, nil, uris...)
	stock := f.imagesOf()[0]
	require.NotEqual(t, m.ID.String(), stock)
	j := f.prepare(dataset.Options{SplitBatches: 4})
	want := truth(t, files, j)
	f.frame(j, "d0", 0, 4)
	require.NoError(t, f.Close())

	f = rollOut(t, m, j, want, uris)
	f.frame(j, "d0", 0, 1)
	_, b, _ := f.get(f.base + "/metrics")
	assert.Contains(t, string(b), `millrace_device_image_drift{drive="d0"} 0`)
	for _, drive := range []string{"d0", "d1"} {
		assert.Contains(t, string(b),
			fmt.Sprintf(`millrace_device_image_info{drive=%q,image=%q} 1`, drive, m.ID.String()))
	}
	assert.NotContains(t, string(b), stock, "one image a drive")
}

// TestAnImageThatIsRefused checks that drives that refuse an image keep the old one, report the drift, and serve.
func TestAnImageThatIsRefused(t *testing.T) {
	files := content(t)
	m := anImage(t)
	public, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	key := put(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	f := start(t, func(c *Config) {
		c.Image = ImageConfig{File: put(t, "new.mimg", m.Bytes()), Policy: "warn", Keys: []string{key}}
		c.Drives[0].URI += "?slm=32MiB"
	}, fill(t, "file", files))
	f.wait("an unsigned image where a warning is enough", func() bool { return f.imagesOf()[0] == m.ID.String() })
	require.NoError(t, f.Close())

	f = start(t, func(c *Config) {
		c.Image = ImageConfig{File: put(t, "new.mimg", m.Bytes()), Policy: "require", Keys: []string{key}}
	}, fill(t, "file", files))
	f.wait("the drift to be told", func() bool {
		_, b, _ := f.get(f.base + "/metrics")
		return bytes.Contains(b, []byte(`millrace_device_image_drift{drive="d0"} 1`))
	})
	f.wait("it to serve", func() bool { return f.state("d0") == "ready" })
	assert.NotEqual(t, m.ID.String(), f.imagesOf()[0])
	j := f.prepare(dataset.Options{})
	f.wait("a mini-batch", func() bool {
		status, _, _, err := f.try(t.Context(), f.link(j, "d0", 0, 1))
		return err == nil && status == 200
	})
}

func TestImageConfigurations(t *testing.T) {
	m := anImage(t)
	good := put(t, "a.mimg", m.Bytes())
	for want, c := range map[string]ImageConfig{
		"image.id":            {ID: "xyz"},
		"image.file: open":    {File: "/none"},
		"no image":            {File: put(t, "b.mimg", []byte("no image"))},
		"image.id says":       {File: good, ID: image.ID{1}.String()},
		"image.keys[0]: open": {Keys: []string{"/none"}},
		"image.keys[0]: ":     {Keys: []string{good}},
		"image.policy":        {Policy: "maybe"},
	} {
		_, err := loadImage(c)
		require.Error(t, err, "%+v", c)
		if want != "no image" {
			assert.ErrorContains(t, err, want)
		}
	}
	w, err := loadImage(ImageConfig{File: good})
	require.NoError(t, err)
	assert.Equal(t, m.ID, w.ID)
	assert.Nil(t, w.Trust)
	_, err = wholefile.Read(good, 10)
	require.ErrorContains(t, err, "more than 10 bytes")
	c := DefaultConfig()
	c.Image.File = "/none"
	_, err = Start(t.Context(), c, Options{})
	require.ErrorIs(t, err, ErrConfig)
}

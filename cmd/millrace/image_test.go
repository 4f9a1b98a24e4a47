package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/operator/bucketize"
	"github.com/millrace/millrace/fpga/operator/log"
	"github.com/millrace/millrace/fpga/operator/sigridhash"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk"
)

// keyFiles writes a key pair as PEM files.
func keyFiles(t *testing.T, seed byte) (private, public string, id image.KeyID) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))
	write := func(name, kind string, der []byte, err error) string {
		require.NoError(t, err)
		return file(t, name, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	private = write("key.pem", "PRIVATE KEY", der, err)
	pub := key.Public().(ed25519.PublicKey)
	der, err = x509.MarshalPKIXPublicKey(pub)
	return private, write("key.pub.pem", "PUBLIC KEY", der, err), image.KeyOf(pub)
}

// specOf is a document of an image of its own.
func specOf(t *testing.T, khz string) string {
	return file(t, "spec.yaml", `base: stock
parameters:
  clock_khz: {value: `+khz+`, source: requested}
  buffers: {value: 2, source: requested}
  chained: {value: 1, source: assumed, reference: a test}
  units:
`+unitFigures(log.Unit, "{source: rtl}")+unitFigures(bucketize.Unit, "{source: rtl}")+
		unitFigures(sigridhash.Unit, "{source: rtl}")+
		unitFigures(program.UnitParquet, "{value: 3, source: assumed, reference: a test}"))
}

// unitFigures are the parameters of a unit in a document.
func unitFigures(u program.Unit, figure string) string {
	return fmt.Sprintf(`    - unit: %d
      elements: {value: 8, source: requested}
      lanes: {value: 1, source: requested}
      initiation_interval: %s
      latency_cycles: %s
`, u, figure, figure)
}

// images runs every image command that prints a result, for everyCommand.
func images(t *testing.T, dir string, do func(args ...string), drive string) {
	key, pub, _ := keyFiles(t, 1)
	do("image", "build", specOf(t, "200000"), "--out", dir+"/new.mimg")
	do("image", "sign", dir+"/new.mimg", "--key", key)
	do("image", "verify", dir+"/new.mimg", "--key", pub)
	do("image", "info", dir+"/new.mimg")
	must(t, "image", "build", "--stock", "--out", dir+"/stock.mimg")
	do("image", "diff", dir+"/stock.mimg", dir+"/new.mimg")
	do("image", "load", drive, dir+"/new.mimg")
	do("image", "activate", drive, "1")
	do("image", "rollback", drive)
	code, _, _ := millrace(t, "image", "load", drive, dir+"/stock.mimg", "--slot", "4")
	require.Equal(t, exitFailed, code)
	do("image", "list", drive)
	do("image", "trust", drive, "--image-policy", "warn")
}

// reported reads what image list prints as JSON.
func reported(t *testing.T, uri string) (r image.LogPage) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(must(t, "image", "list", uri, "--output", "json")), &r))
	return r
}

// TestImagesInTheField takes an image from its document to a drive and back, on every kind of drive that can be had
// here.
func TestImagesInTheField(t *testing.T) {
	key, pub, _ := keyFiles(t, 1)
	dir := t.TempDir()
	must(t, "image", "build", specOf(t, "200000"), "--out", dir+"/a.mimg", "--key", key)
	must(t, "image", "build", specOf(t, "100000"), "--out", dir+"/b.mimg", "--key", key)
	must(t, "image", "build", specOf(t, "50000"), "--out", dir+"/unsigned.mimg")
	a, err := readImage(dir + "/a.mimg")
	require.NoError(t, err)
	b, err := readImage(dir + "/b.mimg")
	require.NoError(t, err)

	local := "file:" + dir + "/d0.flash"
	must(t, "drive", "create", local+"?size=1MiB&slm=1MiB", "--image-policy", "require", "--image-key", pub)
	line, _ := startServe(t, "--flash", dir+"/d1.flash", "--size", "1MiB", "--image-policy", "require", "--image-key",
		pub)
	remote := strings.TrimSuffix(strings.Fields(line)[1], ":")
	for _, uri := range []string{local, remote, remote + "?commands=standard"} {
		t.Run(uri, func(t *testing.T) {
			code, _, stderr := millrace(t, "image", "load", uri, dir+"/unsigned.mimg")
			assert.Equal(t, exitFailed, code)
			errorLine(t, stderr, "refused at step signature", stock.Interface().String(), "operation denied")
			assert.Contains(t, must(t, "image", "load", uri, dir+"/a.mimg"), " image "+a.ID.String())
			assert.Contains(t, must(t, "image", "activate", uri, a.ID.Short()), "activated image "+a.ID.String())
			assert.Contains(t, must(t, "image", "load", uri, dir+"/a.mimg"), "it has already")
			assert.Contains(t, must(t, "image", "load", uri, dir+"/b.mimg", "--activate"), "activated image "+
				b.ID.String())
			at, ok := new(image.LogPage), false
			*at = reported(t, uri)
			active, ok := at.Active()
			require.True(t, ok)
			assert.Equal(t, b.ID, active.Image)
			assert.Equal(t, image.PolicyRequire, at.Policy)
			require.NotEmpty(t, at.Keys)
			assert.Contains(t, must(t, "image", "rollback", uri), "went back to image "+a.ID.String())
			table := must(t, "image", "list", uri)
			assert.Regexp(t, `field +`+a.ID.Short()+` +\d+ +trusted +active`, table)
			assert.Contains(t, table, "require")
			assert.Contains(t, must(t, "drive", "info", uri), "image policy")
			must(t, "image", "activate", uri, "0")
		})
	}

	t.Run("in use", func(t *testing.T) {
		dev, err := sdk.Open(t.Context(), remote+"?hostnqn=nqn.2024-01.io.millrace:worker", sdk.DeviceOptions{})
		require.NoError(t, err)
		defer func() { require.NoError(t, dev.Close()) }()
		_, err = dev.ReserveSLM(t.Context(), 4096)
		require.NoError(t, err)
		code, _, stderr := millrace(t, "image", "activate", remote, "1")
		assert.Equal(t, exitFailed, code)
		errorLine(t, stderr, "step in use", "nqn.2024-01.io.millrace:worker", "drain it first")
	})
}

func TestDriveTrustByFlags(t *testing.T) {
	key, pub, id := keyFiles(t, 1)
	_, pub2, id2 := keyFiles(t, 2)
	dir := t.TempDir()
	flash := dir + "/d.flash"
	must(t, "image", "build", specOf(t, "200000"), "--out", dir+"/a.mimg", "--key", key)
	a, err := readImage(dir + "/a.mimg")
	require.NoError(t, err)
	for _, serve := range []struct {
		flags  []string
		policy image.Policy
		keys   []image.KeyID
	}{
		{nil, image.PolicyOff, []image.KeyID{}},
		{[]string{"--image-policy", "warn", "--image-key", pub}, image.PolicyWarn, []image.KeyID{id}},
		{nil, image.PolicyWarn, []image.KeyID{id}},
		{
			[]string{"--image-key", pub2 + "," + pub, "--image-policy", "require"}, image.PolicyRequire,
			[]image.KeyID{id2, id},
		},
		{
			[]string{"--image-revoke", "image:" + a.ID.String() + ",key:" + id2.String()}, image.PolicyRequire,
			[]image.KeyID{id2, id},
		},
		{[]string{"--image-policy", "off"}, image.PolicyOff, []image.KeyID{id2, id}},
	} {
		line, stop := startServe(t, append([]string{"--flash", flash, "--size", "1MiB"}, serve.flags...)...)
		r := reported(t, strings.TrimSuffix(strings.Fields(line)[1], ":"))
		assert.Equal(t, serve.policy, r.Policy, serve.flags)
		assert.Equal(t, serve.keys, r.Keys, serve.flags)
		stop()
	}
	code, _, stderr := millrace(t, "image", "load", "file:"+flash, dir+"/a.mimg")
	assert.Equal(t, exitFailed, code, "revoked stays revoked, whatever the policy")
	errorLine(t, stderr, "step revocation", a.ID.String())
	assert.Contains(t, must(t, "image", "list", "file:"+flash), "revoked key      "+id2.String())
}

// TestRevokingTheActiveImage: the drive goes back to the one before it at once, and never takes it again.
func TestRevokingTheActiveImage(t *testing.T) {
	dir := t.TempDir()
	drive := "file:" + dir + "/d.flash"
	made := must(t, "drive", "create", drive+"?size=1MiB&slm=1MiB")
	assert.NotContains(t, made, "nqn.", "identifiers are for drive info")
	assert.Contains(t, made, "millrace drive put '"+drive)
	var images []*image.Image
	for _, khz := range []string{"200000", "100000"} {
		path := dir + "/" + khz + ".mimg"
		must(t, "image", "build", specOf(t, khz), "--out", path)
		m, err := readImage(path)
		require.NoError(t, err)
		images = append(images, m)
		must(t, "image", "load", drive, path, "--activate")
	}
	revoke := []string{"image", "trust", drive, "--image-revoke", "image:" + images[1].ID.String()}
	code, _, stderr := millrace(t, revoke...)
	assert.Equal(t, exitFailed, code)
	errorLine(t, stderr, "runs image "+images[1].ID.Short(), "--force")
	assert.NotContains(t, must(t, "image", "list", drive), "revoked image", "nothing was changed")
	out := must(t, append(revoke, "--force")...)
	assert.Regexp(t, `1 +field +`+images[0].ID.Short()+` .*active`, out)
	assert.Contains(t, out, "is revoked")
	code, _, stderr = millrace(t, "image", "load", drive, dir+"/100000.mimg")
	assert.Equal(t, exitFailed, code)
	errorLine(t, stderr, "step revocation")
}

// TestTheStockImageCannotBeRevoked: it runs where no other may, and so would go on running.
func TestTheStockImageCannotBeRevoked(t *testing.T) {
	dir := t.TempDir()
	drive := "file:" + dir + "/d.flash"
	must(t, "drive", "create", drive+"?size=1MiB&slm=1MiB")
	b, err := stock.Image()
	require.NoError(t, err)
	stock, err := image.Parse(b)
	require.NoError(t, err)
	for _, more := range [][]string{nil, {"--force"}} {
		code, _, stderr := millrace(t,
			append([]string{"image", "trust", drive, "--image-revoke", "image:" + stock.ID.String()}, more...)...)
		assert.Equal(t, exitFailed, code)
		errorLine(t, stderr, stock.ID.Short())
		assert.NotContains(t, must(t, "image", "list", drive), "revoked image")
	}
	code, _, stderr := millrace(t, "drive", "create", "file:"+dir+"/e.flash?size=1MiB&slm=1MiB", "--image-revoke",
		"image:"+stock.ID.String())
	assert.Equal(t, exitFailed, code)
	errorLine(t, stderr, "cannot be revoked")
}

func TestImageFiles(t *testing.T) {
	key, pub, id := keyFiles(t, 1)
	dir := t.TempDir()
	spec := specOf(t, "200000")
	must(t, "image", "build", spec, "--out", dir+"/a.mimg")
	must(t, "image", "build", spec, "--out", dir+"/again.mimg")
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return b
	}
	assert.Equal(t, read("a.mimg"), read("again.mimg"), "reproducible")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	must(t, "image", "build", spec, "--out", dir+"/dated.mimg")
	assert.NotEqual(t, read("a.mimg"), read("dated.mimg"))
	assert.Contains(t, must(t, "image", "diff", dir+"/a.mimg", dir+"/dated.mimg"), "the same image")
	assert.Contains(t, must(t, "image", "diff", dir+"/a.mimg", dir+"/again.mimg"), "the same bytes")

	must(t, "image", "sign", dir+"/a.mimg", "--key", key, "--out", dir+"/signed.mimg")
	assert.Contains(t, must(t, "image", "info", dir+"/signed.mimg"), "by key "+id.String())
	again := file(t, "spec.json", must(t, "image", "info", dir+"/signed.mimg", "--spec"))
	must(t, "image", "build", again, "--out", dir+"/rebuilt.mimg", "--key", key)
	assert.Equal(t, read("signed.mimg"), read("rebuilt.mimg"), "from its own document")

	info := must(t, "image", "info", dir+"/a.mimg")
	assert.Regexp(t, `clock_khz +200000 \(requested\)`, info)
	assert.Regexp(t, `log.latency_cycles +[1-9]\d* \(rtl: log [0-9a-f]{64}\)`, info)
	assert.NotContains(t, info, "without source, not read")

	code, out, stderr := millrace(t, "image", "verify", dir+"/a.mimg", "--key", pub)
	assert.Equal(t, exitFailed, code)
	assert.Regexp(t, `signature +failed`, out)
	assert.Regexp(t, `self-test +skipped`, out)
	errorLine(t, stderr, "refused at step signature")
	assert.Regexp(t, `signature +skipped`, must(t, "image", "verify", dir+"/a.mimg"))
	code, _, stderr = millrace(t, "image", "verify", dir+"/signed.mimg", "--key", pub, "--revoke", "key:"+id.String())
	assert.Equal(t, exitFailed, code)
	errorLine(t, stderr, "step revocation")
	code, out, _ = millrace(t, "image", "verify", spec)
	assert.Equal(t, exitFailed, code)
	assert.Regexp(t, `format +failed`, out)
}

func TestImageStatus(t *testing.T) {
	_, pub, _ := keyFiles(t, 1)
	dir := t.TempDir()
	must(t, "image", "build", "--stock", "--out", dir+"/stock.mimg")
	img, none := dir+"/stock.mimg", dir+"/none"
	drive := "file:" + dir + "/d.flash"
	must(t, "drive", "create", drive+"?size=1MiB&slm=1MiB")
	bad := file(t, "bad.yaml", "base: stock\nunits: []\n")
	refusals(t, "image", func(t *testing.T, status int, args []string, says string) {
		code, stdout, stderr := millrace(t, args...)
		assert.Equal(t, status, code, stderr)
		assert.Empty(t, stdout)
		errorLine(t, stderr, says)
		assert.NoFileExists(t, none)
	}, "IMAGE", img, "DRIVE", drive, "KEY", pub, "DIR", dir, "HEX", strings.Repeat("ab", 32), "BAD", bad)
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	code, _, stderr := millrace(t, "image", "build", specOf(t, "1"), "--out", none)
	assert.Equal(t, exitFailed, code)
	errorLine(t, stderr, "SOURCE_DATE_EPOCH")
}

package node

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	"github.com/millrace/millrace/fpga/program"
	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
)

// negateModule is a module with the function negate: (int64) -> int64.
func negateModule() []byte {
	return w.Module{Functions: []w.Function{{Name: "negate", Params: []byte{w.I64}, Results: []byte{w.I64},
		Code: w.Code(w.ConstI64(0), w.Get(0), w.Op(0x7d))}}}.Bytes()
}

// withModule is the stock image with a module.
func withModule(t *testing.T) *image.Image {
	t.Helper()
	return stocktest.Changed(t, func(s *image.Spec) {
		s.AddModule(image.Module{Name: "features", Bytes: negateModule()})
	})
}

// TestModulesOfImages: the CPU runs the modules of images that the configuration names, signed by one of its keys if it
// names some.
func TestModulesOfImages(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	other, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	keyFile := func(key ed25519.PublicKey) string {
		der, err := x509.MarshalPKIXPublicKey(key)
		require.NoError(t, err)
		return put(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	m := withModule(t)
	signed, err := m.Sign(private)
	require.NoError(t, err)
	plainFile, signedFile := put(t, "plain.mimg", m.Bytes()), put(t, "signed.mimg", signed)
	want := program.Modules{sha256.Sum256(negateModule()): negateModule()}
	for _, c := range []ModuleConfig{{Images: []string{plainFile}}, {Images: []string{plainFile, signedFile}},
		{Images: []string{signedFile}, Keys: []string{keyFile(other), keyFile(public)}}} {
		got, err := loadModules(&Config{Modules: c})
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for says, c := range map[string]ModuleConfig{
		"modules.images[0]: open":                {Images: []string{"/none"}},
		"modules.images[1]: ":                    {Images: []string{plainFile, keyFile(other)}},
		"modules.keys[0]: open":                  {Keys: []string{"/none"}},
		"modules.keys[0]: " + plainFile:          {Keys: []string{plainFile}},
		"modules.images[0]: " + plainFile + ": ": {Images: []string{plainFile}, Keys: []string{keyFile(public)}},
		"is not trusted":                         {Images: []string{signedFile}, Keys: []string{keyFile(other)}},
	} {
		_, err := loadModules(&Config{Modules: c})
		require.ErrorContains(t, err, says)
		_, err = Start(t.Context(), Config{Name: "n", Listen: []string{"127.0.0.1:0"}, Modules: c}, Options{})
		require.ErrorIs(t, err, ErrConfig, "before anything is opened")
	}
}

// TestModulesOfAPreparation: a node prepares a job whose module is in an image that it names, and refuses requests that
// make no sense and functions that the module lacks.
func TestModulesOfAPreparation(t *testing.T) {
	const text = "sparse: [{inputs: [cat_0], as: k, " +
		"ops: [wasm: {module: m, function: negate, in: [int64], out: int64}]}]\n"
	files := map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 300)}
	digest := sha256.Sum256(negateModule())
	named := func(change func(*apiv1.JobModule)) []*apiv1.JobModule {
		m := &apiv1.JobModule{Name: "m", Sha256: digest[:], Bytes: int64(len(negateModule()))}
		if change != nil {
			change(m)
		}
		return []*apiv1.JobModule{m}
	}
	f := start(t, func(c *Config) {
		c.Drives[0].Engine = "cpu"
		c.Modules.Images = []string{put(t, "features.mimg", withModule(t).Bytes())}
	}, fill(t, "mem", files))
	j := f.describeJobWith([]pipeline.Module{{Name: "m", Digest: digest}}, text, dataset.Options{})
	for says, modules := range map[string][]*apiv1.JobModule{
		`"m" has no file`:      nil,
		"a digest of 31 bytes": named(func(m *apiv1.JobModule) { m.Sha256 = m.Sha256[1:] }),
		"want 8 to 1048576":    named(func(m *apiv1.JobModule) { m.Bytes = 7 }),
		`names module "x"`:     named(func(m *apiv1.JobModule) { m.Name = "x" }),
	} {
		j.Modules = modules
		_, err := f.node.Prepare(t.Context(), j.PrepareRequest)
		require.ErrorContains(t, err, says)
		assert.Contains(t, []connect.Code{connect.CodeInvalidArgument, connect.CodeFailedPrecondition},
			connect.CodeOf(err), says)
	}
	j.Modules = named(func(m *apiv1.JobModule) { m.Sha256 = make([]byte, 32) })
	_, err := f.node.Prepare(t.Context(), j.PrepareRequest)
	require.ErrorContains(t, err, "the job's digest is not that of its manifest", "the digest of a module is part of it")
	j.Modules = named(nil)
	_, err = f.node.Prepare(t.Context(), j.PrepareRequest)
	require.NoError(t, err)
	f.frame(j, "d0", 0, 2)
}

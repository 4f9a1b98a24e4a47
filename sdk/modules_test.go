package sdk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// TestAMissingModuleIsNamed starts a processor for a program whose module is in no image, in an image that is not
// active, and in the active one.
func TestAMissingModuleIsNamed(t *testing.T) {
	module := image.Module{Name: "m", Bytes: wasmtest.Module{Functions: []wasmtest.Function{{Name: "f",
		Params: []byte{wasmtest.I64}, Results: []byte{wasmtest.I64}, Code: wasmtest.Get(0)}}}.Bytes()}
	p := &program.Program{
		Source:  program.Parquet,
		Columns: []program.Column{{Name: "a", Kind: program.Int64, Part: program.GraphFirst}},
		Graphs: []program.Graph{{
			Steps: []program.Step{{Inputs: []uint32{0}, Combine: wasm.Op{Module: module.Digest(), Function: "f",
				In: [program.MaxInputs]program.Kind{program.Int64}, Out: program.Int64}}},
			Sinks: []program.GraphSink{{Value: 1, Sink: program.Sink{To: program.ToSparse}}},
		}},
		Output: program.Output{Keys: 1},
	}
	schema := &tensor.Schema{IDs: tensor.Int64, Keys: []tensor.Key{{Name: "k", List: true}}}
	dev, err := Create(t.Context(), "mem:?size=1MiB&slm=64MiB", DeviceOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	start := func() error {
		x, err := NewProcessor(t.Context(), dev, p, schema, processor.Options{})
		if err == nil {
			err = x.Close()
		}
		return err
	}
	var missing *ModuleError
	require.ErrorAs(t, start(), &missing)
	assert.Equal(t, module.Digest(), missing.Module)
	assert.Empty(t, missing.Slots)
	assert.ErrorContains(t, missing, "is in no image of the drive")

	m := stocktest.Changed(t, func(s *image.Spec) { s.AddModule(module) })
	require.NoError(t, dev.LoadImage(t.Context(), 2, m.Bytes()))
	require.ErrorAs(t, start(), &missing)
	require.Len(t, missing.Slots, 1)
	assert.Equal(t, m.ID, missing.Slots[0].Image)
	assert.ErrorContains(t, missing, "in slot 2: activate that image")
	require.NoError(t, dev.ActivateImage(t.Context(), 2), "the processors that were refused hold no memory")
	require.NoError(t, start())
	_, err = dev.RollbackImage(t.Context())
	require.NoError(t, err)
	require.ErrorAs(t, start(), &missing)
}

// TestAnImageOfADriveMadeOfFiles opens files as a drive that runs an image, and with images that it refuses.
func TestAnImageOfADriveMadeOfFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, make([]byte, 512), 0o600))
	imageWith := func(change func(*image.Spec)) []byte { return stocktest.Changed(t, change).Bytes() }
	b := imageWith(func(s *image.Spec) { s.Partition.Slots++ })
	dev, _, err := OpenFiles(t.Context(), []string{path}, FilesOptions{Image: b})
	require.NoError(t, err)
	r, err := dev.ImageLog(t.Context())
	require.NoError(t, err)
	active, ok := r.Active()
	require.True(t, ok)
	m, err := image.Parse(b)
	require.NoError(t, err)
	assert.Equal(t, m.ID, active.Image)
	require.NoError(t, dev.Close())
	for step, b := range map[image.Step][]byte{
		image.StepInterface: imageWith(func(s *image.Spec) { s.Interface[0]++ }),
		image.StepSelfTest:  imageWith(func(s *image.Spec) { s.SelfTest[0].Output[0]++ }),
	} {
		_, _, err := OpenFiles(t.Context(), []string{path}, FilesOptions{Image: b})
		var refused *image.LoadError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, step, refused.Step)
	}
	_, _, err = OpenFiles(t.Context(), []string{path}, FilesOptions{Image: []byte("no image")})
	require.Error(t, err)
}

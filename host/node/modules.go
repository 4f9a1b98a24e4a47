package node

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/sdk/pipeline"
)

// jobModules are the WebAssembly modules that this machine's CPU may run. Drives run those of their active images.
type jobModules struct {
	ofImages  program.Modules // The images that the configuration names have these.
	submitted bool            // and those that submitters put to the control plane, which cache fetches
	cache     *jobfiles.Cache
}

// loadModules reads the images that a configuration names for the CPU.
func loadModules(c *Config) (program.Modules, error) {
	var keys []ed25519.PublicKey
	for i, path := range c.Modules.Keys {
		b, err := wholefile.Read(path, image.MaxKeyFile)
		if err != nil {
			return nil, fmt.Errorf("modules.keys[%d]: %w", i, err)
		}
		more, err := image.ParsePublicKeys(b)
		if err != nil {
			return nil, fmt.Errorf("modules.keys[%d]: %s: %w", i, path, err)
		}
		keys = append(keys, more...)
	}
	all := program.Modules{}
	for i, path := range c.Modules.Images {
		content, err := wholefile.Read(path, image.MaxSize)
		if err != nil {
			return nil, fmt.Errorf("modules.images[%d]: %w", i, err)
		}
		parsed, err := image.Parse(content)
		if err == nil && len(c.Modules.Keys) > 0 {
			err = parsed.Verify(keys)
		}
		if err != nil {
			return nil, fmt.Errorf("modules.images[%d]: %s: %w", i, path, err)
		}
		maps.Copy(all, parsed.Spec.ModuleBytes())
	}
	return all, nil
}

// bind returns a pipeline with the modules that a job names, which are kept until release is called. A module that this
// machine's CPU may not run is bound by its digest alone: drives whose active images hold it run it all the same.
func (m *jobModules) bind(
	ctx context.Context, spec *pipeline.Spec, list []*apiv1.JobModule,
) (_ *pipeline.Spec, release []func(), err error) {
	defer func() {
		if err != nil {
			callAll(release)
			release = nil
		}
	}()
	named, err := jobfiles.ReadModules(list)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range named {
		module := pipeline.Module{Name: n.Name, Digest: program.ModuleDigest(n.File.Digest)}
		if module.Bytes = m.ofImages[module.Digest]; module.Bytes == nil && m.submitted {
			var done func()
			if module.Bytes, done, err = m.cache.AcquireModule(ctx, n.File); err != nil {
				return nil, release, fmt.Errorf("module %.80q: %w", n.Name, err)
			}
			release = append(release, done)
		}
		if spec, err = spec.BindModule(module); err != nil {
			return nil, release, err
		}
	}
	return spec, release, nil
}

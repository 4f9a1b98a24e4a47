package record

import (
	"fmt"

	"github.com/millrace/millrace/fpga/program"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/jobfiles"
	"github.com/millrace/millrace/sdk/pipeline"
)

// bindModules gives a pipeline the digests of its modules, without which the pipeline cannot be resolved. Their bytes
// were checked when the job was submitted, and are checked again by every engine that runs them.
func bindModules(p *pipeline.Spec, list []*apiv1.JobModule) (*pipeline.Spec, error) {
	modules, err := jobfiles.ReadModules(list)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		named := pipeline.Module{Name: m.Name, Digest: program.ModuleDigest(m.File.Digest)}
		if p, err = p.BindModule(named); err != nil {
			return nil, fmt.Errorf("pipeline: %w", err)
		}
	}
	return p, nil
}

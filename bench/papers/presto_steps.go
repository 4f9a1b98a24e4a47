package papers

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/sdk/pipeline"
)

// stepModels are the models whose operators are timed by kinds of features: those of III-B with the fewest and the most
// borders.
var stepModels = []string{"rm2", rm5}

// measureSteps sets the shares of a mini-batch's processor time that the operators of each kind of features take. The
// engine's clock times all operators of a row group together, so a pipeline of each kind by itself is measured beside
// the whole one.
func measureSteps(ctx context.Context, o *Options, r *Result) error {
	least := o.duration(2 * time.Second)
	for _, name := range stepModels {
		o.Progress(fmt.Sprintf("%s: operators of dense, sparse and generated features", name))
		m, err := workload.Find(name)
		if err != nil {
			return err
		}
		data, err := generate(ctx, o, workload.Options{Model: m, Rows: o.size(rowsOf(m)), Coverage: 1})
		if err != nil {
			return err
		}
		spec, err := pipeline.Named(name)
		if err != nil {
			return err
		}
		whole, err := measurePipeline(ctx, data, spec, least)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for kind, part := range featureKinds(spec) {
			p, err := measurePipeline(ctx, data, part, least)
			if err != nil {
				return fmt.Errorf("%s, %s features: %w", name, kind, err)
			}
			r.set(Measured, "fig5."+kind+"."+name, "share", p.operatorSeconds()*whole.rowsPerCPUSecond)
		}
		r.set(Measured, "fig5.hash_and_log."+name, "share", r.at("fig5.dense."+name)+r.at("fig5.sparse."+name))
	}
	return nil
}

// featureKinds returns a pipeline of each kind of features, with the label.
func featureKinds(spec *pipeline.Spec) map[string]*pipeline.Spec {
	dense, sparse, generated := *spec, *spec, *spec
	dense.Sparse, dense.Generated = nil, nil
	sparse.Dense, sparse.Generated = nil, nil
	generated.Dense, generated.Sparse = nil, nil
	return map[string]*pipeline.Spec{"dense": &dense, "sparse": &sparse, "generated": &generated}
}

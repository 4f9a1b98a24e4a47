package papers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/sdk/pipeline"
)

// The data of VI-D's classes of transforms: RM1 of Tables IV and V, a tenth as wide.
const (
	mixDense    = 122   // of 1,221 dense features
	mixSparse   = 30    // of 298 sparse features
	mixDerived  = 30    // of 304 derived features
	mixLength   = 25.97 // ids of a sparse feature
	mixCoverage = 0.45  // of rows that have a feature
	mixRows     = 16_384
	mixTable    = 1024 // ids that MapId maps, and borders of Bucketize
)

// mixPipelines are pipelines of each class by itself, with the operators that VI-D names for it: each takes a third of
// the dense or of the derived features; both of those for sparse features take all. What the operators' parameters are,
// the paper does not say.
func mixPipelines() map[string]string {
	table := strings.TrimSuffix(strings.Repeat("0, 1, ", mixTable/2), ", ")
	const head = "name: mix\nbatch: 4096\nlabel: {column: label}\n"
	return map[string]string{
		"dense": head + fmt.Sprintf(`dense:
  - {columns: [int_0..int_%d], ops: [fill_null: 0, logit: {eps: 1.0e-5}]}
  - {columns: [int_%d..int_%d], ops: [fill_null: 0, box_cox: {lambda1: 0.5, lambda2: 1}]}
  - {columns: [int_%d..int_%d], ops: [onehot: {classes: 8, lower: 0, upper: 1000}]}
`, mixDense/3-1, mixDense/3, 2*(mixDense/3)-1, 2*(mixDense/3), mixDense-1),
		"sparse": head + fmt.Sprintf(`sparse:
  - {columns: [cat_0..cat_%d], ops: [firstx: 20, sigrid_hash: {salt: 0, max: 500000}]}
`, mixSparse-1),
		"generated": head + fmt.Sprintf(`sparse:
  - {columns: [cat_0..cat_%d], as: "ngram_{n}", ops: [ngram: {n: 2}, sigrid_hash: {salt: 0, max: 500000}]}
  - {columns: [cat_%d..cat_%d], as: "mapped_{n}", ops: [map_id: {table: [%s], default: 2}]}
generated:
  - columns: [int_0..int_%d]
    as: "bucket_{n}"
    ops: [fill_null: 0, bucketize: {borders: {log_spaced: {from: 1, to: 1.0e6, count: %d}}}]
`, mixDerived/3-1, mixDerived/3, 2*(mixDerived/3)-1, table, mixDerived/3-1, mixTable),
	}
}

// measureMix sets the processor time that the operators of each class take for a row, and their shares.
func measureMix(ctx context.Context, o *Options, r *Result) error {
	model := workload.Model{Name: "mix", Dense: mixDense, Sparse: mixSparse, Lists: true, MeanLength: mixLength,
		Tables: mixSparse, Embeddings: 500_000}
	data, err := generate(ctx, o, workload.Options{Model: model, Rows: o.size(mixRows), Coverage: mixCoverage})
	if err != nil {
		return err
	}
	total := 0.0
	for class, document := range mixPipelines() {
		spec, err := pipeline.Parse([]byte(document))
		if err != nil {
			return fmt.Errorf("%s: %w", class, err)
		}
		p, err := measurePipeline(ctx, data, spec, o.duration(3*time.Second))
		if err != nil {
			return fmt.Errorf("%s: %w", class, err)
		}
		r.set(Measured, "mix.time."+class, "ns/row", 1e9*p.operatorSeconds())
		total += r.at("mix.time." + class)
	}
	for class := range mixPipelines() {
		r.set(Measured, "mix.share."+class, "share", r.at("mix.time."+class)/total)
	}
	return nil
}

package rm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/sdk/pipeline"
)

// The workloads that are no Parquet: Criteo's rows as text, and packed. Both go through MiniPipe's stateless pipeline
// (fill, Neg2Zero, logarithm; modulus), which the named pipeline criteo-8k is.
const (
	CriteoTSV    = "criteo-tsv"
	CriteoBinary = "criteo-bin"

	// criteoZipf is packed rows whose ids are spread by Zipf's law over 2^31, and are keys without a modulus.
	criteoZipf = "criteo-zipf"

	criteoPipeline = "criteo-8k"
	criteoRows     = 524_288 // 128 MB of text, 84 MB packed
)

// Known reports whether there is a workload of that name; the error wraps workload.ErrOptions.
func Known(name string) error {
	if _, _, ok := pairOf(name); ok {
		return nil
	}
	names := []string{CriteoTSV, CriteoBinary, RealTSV, RealBinary}
	for _, m := range workload.Models() {
		names = append(names, m.Name)
	}
	for _, p := range pairs {
		names = append(names, p.name)
	}
	return fmt.Errorf("%w: workload %q, want one of %s", workload.ErrOptions, name, strings.Join(names, ", "))
}

// The shape of a day of Criteo's 1TB click logs, from 3,000 rows of day 11: how many in a thousand of the dense
// features have no digits, one, two ... (3,030 characters of 13 features in all), how many are negative (the sign
// counts as a digit there), and how many of the sparse features are empty; the others have eight digits.
var (
	denseLengths = [...]int{185, 506, 168, 75, 43, 19, 4}
	negatives    = 5
	emptySparse  = 79
)

// criteoFeatures draws the cells of a row. Cells that are not there are nil in ok.
type criteoFeatures struct {
	label  int32
	dense  [text.Dense]int32
	sparse [text.Sparse]uint32
	ok     [text.Dense + text.Sparse]bool
}

func (f *criteoFeatures) draw(rng *rand.Rand, ids func() uint32) {
	f.label = 0
	if rng.IntN(32) == 0 {
		f.label = 1
	}
	for i := range f.dense {
		pick, digits := rng.IntN(1000), 0
		for pick >= denseLengths[digits] {
			pick -= denseLengths[digits]
			digits++
		}
		f.dense[i], f.ok[i] = 0, digits > 0
		if digits > 0 {
			most := int32(1)
			for range digits {
				most *= 10
			}
			f.dense[i] = rng.Int32N(most-most/10) + most/10
			if digits == 1 {
				f.dense[i] = rng.Int32N(10)
			}
			if rng.IntN(1000) < negatives {
				f.dense[i] = -1
			}
		}
	}
	for i := range f.sparse {
		f.sparse[i], f.ok[text.Dense+i] = ids(), rng.IntN(1000) >= emptySparse
	}
}

// zipfExponent is that of the ids of criteoZipf. zipfSpread is odd, so that every rank has an id of its own, anywhere
// below 2^31.
const (
	zipfExponent = 1.05
	zipfSpread   = 0x9e3779b1
)

// specOf returns a named pipeline, without its modulus over criteoZipf.
func specOf(data, named string) (*pipeline.Spec, error) {
	spec, err := pipeline.Named(named)
	if err != nil || data != criteoZipf {
		return spec, err
	}
	for i := range spec.Sparse {
		spec.Sparse[i].Ops = slices.DeleteFunc(spec.Sparse[i].Ops,
			func(op pipeline.Op) bool { return op.Name == "positive_modulus" })
	}
	return spec, nil
}

// generateCriteo writes a partition of text or of packed rows, whose missing cells are 0.
func generateCriteo(dir, name string, rows int64, seed uint64) (path string, err error) {
	rng := rand.New(rand.NewPCG(seed, 0x637269746f))
	ids := rng.Uint32
	if name == criteoZipf {
		zipf := rand.NewZipf(rng, zipfExponent, 1, 1<<31-1)
		ids = func() uint32 { return uint32(zipf.Uint64()*zipfSpread) & (1<<31 - 1) }
	}
	packed := sourceOf(name) == program.CriteoBinary
	var f criteoFeatures
	var out []byte
	if packed {
		out = make([]byte, 0, rows*text.BinaryRow)
	} else {
		out = make([]byte, 0, rows*260)
	}
	for range rows {
		f.draw(rng, ids)
		if packed {
			out = f.appendBinary(out)
		} else {
			out = f.appendText(out)
		}
	}
	path = filepath.Join(dir, strings.ReplaceAll(name, "-", "."))
	if err := os.WriteFile(path, out, 0o600); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return path, nil
}

func (f *criteoFeatures) appendText(to []byte) []byte {
	to = strconv.AppendInt(to, int64(f.label), 10)
	for i, v := range f.dense {
		to = append(to, '\t')
		if f.ok[i] {
			to = strconv.AppendInt(to, int64(v), 10)
		}
	}
	for i, v := range f.sparse {
		to = append(to, '\t')
		if f.ok[text.Dense+i] {
			const digits = "0123456789abcdef"
			for shift := 28; shift >= 0; shift -= 4 {
				to = append(to, digits[v>>shift&15])
			}
		}
	}
	return append(to, '\n')
}

func (f *criteoFeatures) appendBinary(to []byte) []byte {
	to = binary.LittleEndian.AppendUint32(to, uint32(f.label))
	for i, v := range f.dense {
		if !f.ok[i] {
			v = 0
		}
		to = binary.LittleEndian.AppendUint32(to, uint32(v))
	}
	for i, v := range f.sparse {
		if !f.ok[text.Dense+i] {
			v = 0
		}
		to = binary.LittleEndian.AppendUint32(to, v)
	}
	return to
}

// sourceOf is the format of a workload's partition.
func sourceOf(name string) program.Source {
	switch name {
	case CriteoTSV, RealTSV:
		return program.CriteoTSV
	case CriteoBinary, criteoZipf, RealBinary:
		return program.CriteoBinary
	}
	return program.Parquet
}

// isCriteo reports whether a workload is one of this file's.
func isCriteo(name string) bool {
	return slices.Contains([]string{CriteoTSV, CriteoBinary, criteoZipf}, name)
}

package wire_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/internal/goldenfile"
)

// wireForm is a program whose bytes never change.
type wireForm struct {
	file    string // in testdata, without its end; "" if the bytes are not kept
	program func() *program.Program
	minor   uint16   // the least minor version that can express it
	says    []string // parts of its text
}

// forms are programs of every section and every operator.
var forms = []wireForm{
	{"every_op.v1", everyOp, 0, []string{"list<int64>", "clamp min 0 max 99", "hex_to_int", "zero_extend", "firstx 3",
		"bucketize borders float32 [0.5 1 1.5] side left nan torcharrow", "log 1", "sigrid_hash salt -7 max 500000",
		"bucketize borders int64 [-1 1099511627776] side right"}},
	{"text.v1", textProgram, 0, nil},
	{"reals.v1", realOps, 0, nil},
	{"ngram.v1", windows, 0, nil},
	{"hash_bytes.v1", categories, 0, nil},
	{"tables.v1", tables, 0, nil},
	{"list_slice.v1", parts, 0, nil},
	{"scaled.v1", scaled, 0, nil},
	{"annotated.v1", annotated, 0, nil},
	{"fixed_length.v1", embeddings, 0, nil},
	{"onehot.v1", hotColumns, 0, []string{"dense 0: onehot 3\n",
		"dense 3: convert float32 | onehot classes 2 lower -1 upper 1\n"}},
	{"maps.v1.1", mapProgram, 1, []string{`column 1 "s.key_value.value.key_value.key" list<int64> map values`,
		"  [9] scored sparse 0: firstx 3 | sigrid_hash salt 0 max 1000", "  [1] dense 1: fill_null 0",
		`column 3 "l.key_value.key" int64 map keys`, "ids int32, fixed false, weights"}},
	{"bfloat16.v1.2", bfloatProgram, 2, []string{", dense type bfloat16"}},
	{"", func() *program.Program {
		p := mapProgram()
		p.Output.DenseType = program.DenseBFloat16
		return p
	}, 2, []string{", dense type bfloat16"}},
	{"graphs.v1.3", graphProgram, 3, nil},
	{"crosses.v1.3", crosses, 3, []string{"value 2 = [0 1 0]: hash_cross 1000 -> int64\n",
		"sparse 1: hash_bucket max\n"}},
	{"scoring.v1.3", scoring, 3, []string{
		"value 7 = [0 2]: compute_score function get_jaccard_similarity zero_norm fail -> float32\n",
		"value 8 = [0 1 2 3]: compute_score function get_cosine_similarity zero_norm zero -> float32\n"}},
	{"calls.v1.3", calling, 3, []string{
		`value 2 = [0 1]: wasm module 010203000000 function "f" in int64,float64 out int64 -> int64`}},
	{"texts.v1.3", partsOfTexts, 3, []string{"  value 2 = [0]: split separator \"|\" empty drop -> list<bytes>\n",
		"  value 4 = [2]: list_length -> int64\n", "  value 5 = [1]: list_length -> int64\n"}},
	{"absent.v1.4", absentColumns, 4, []string{" may be absent\n"}},
	{"scored.v1.5", scoredLists, 5, []string{"  value 2 = [0]: enumerate | firstx 3 -> list<int64, score>\n",
		"  value 3 = [0 1]: with_scores -> list<int64, score>\n", "  value 5 = [4]: scores -> list<float32>\n",
		"  value 2 to scored sparse 0:\n"}},
	{"", weightsOfBoth, 5, nil},
	{"map_steps.v1.5", mapSteps, 5, []string{"  [-7] scored true\n", "  value 2 to scored sparse 1:\n",
		"  value 3 = [0 1]: id_list_transform -> list<int64>\n"}},
	{"ngram.v1.6", listedWindows, 6, nil},
	{"text_keys.v1.6", textKeyProgram, 6, []string{`  ["color"] sparse 0:`}},
	{"lookups.v1.7", lookingUp, 7, []string{"sparse 0: vocabulary table 0 absent bucket buckets 9 base 9\n",
		"sparse 1: vocabulary table 1 absent rare base 0 rare -2\n",
		"sparse 2: vocabulary table 1 absent fail base 1099511627776\n",
		"lookup table 1: 8 keys hashed in 16 entries at byte 192\n"}},
	{"text_values.v1.8", textValueProgram, 8, nil},
	{"readings.v1.9", annotatedReadings, 9, nil},
	{"refusals.v1.9", refusingProgram, 9, []string{"label: convert float32 refuses nan and infinities\n",
		"dense 0: fill_nan -0.1 | convert float32 | fill_nan 2 refuses nan\n", `column 1 "n" int64 fits int64`}},
	{"arrays.v1.10", unpackedArrays, 10, []string{"unpack float32 -> list<float32>\n"}},
	{"texts.v1.10", textTables, 10, []string{"unknown default default 1099511627776\n",
		`map_text keys ["" "no" "yes" "é"] values [-1 0 1 2] unknown fail` + "\n"}},
}

// weightsOfBoth has weights of a map and of a graph: the section of maps says that there are weights, and that of
// graphs does not.
func weightsOfBoth() *program.Program {
	p := scoredLists()
	p.Columns = append(p.Columns,
		program.Column{Name: "m.key", Kind: program.Int64, Part: program.MapKeys},
		program.Column{Name: "m.value", Kind: program.Int64, Part: program.MapValues,
			Sinks: []program.Sink{{To: program.ToSparse, Index: 4}}, Picks: []program.Pick{{Key: 1}}})
	p.Output.Keys++
	return p
}

// TestForms checks that each program is valid, has the kept bytes and its version, reads back as it was, and that every
// bit of it is read.
func TestForms(t *testing.T) {
	for i, form := range forms {
		t.Run(fmt.Sprintf("%d %s", i, form.file), func(t *testing.T) {
			p := form.program()
			require.NoError(t, p.Validate())
			b := wire.Marshal(p)
			if form.file != "" {
				goldenfile.Bytes(t, "testdata/"+form.file+".hex", b)
			}
			assert.Equal(t, form.minor, le.Uint16(b[10:]), "the minor version")
			q, err := operator.Unmarshal(b)
			require.NoError(t, err)
			assert.Equal(t, p, q)
			assert.Equal(t, b, wire.Marshal(q))
			for _, part := range form.says {
				assert.Contains(t, p.String(), part)
			}
			checkDamage(t, b)
		})
	}
}

// checkDamage cuts the wire form of a program at every byte, and flips every bit behind the header: each bit is read.
func checkDamage(t *testing.T, good []byte) {
	t.Helper()
	for n := wire.HeaderSize; n < len(good); n++ {
		_, err := operator.Unmarshal(reseal(bytes.Clone(good[:n])))
		require.ErrorIs(t, err, wire.ErrCorrupt, "%d bytes", n)
	}
	b := bytes.Clone(good)
	for i := 8 * wire.HeaderSize; i < 8*len(b); i++ {
		b[i/8] ^= 1 << (i % 8)
		if p, err := operator.Unmarshal(reseal(b)); err == nil {
			require.NotEqual(t, good, wire.Marshal(p), "bit %d is not read", i)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

// refusal is a change of a part of a program, and what its refusal says.
type refusal[T any] struct {
	change func(part T)
	says   string
}

// refused checks that a program with a change is not valid, and that what is read of its bytes is.
func refused[T any](t *testing.T, of func() *program.Program, part func(*program.Program) T,
	changes map[string]refusal[T]) {
	t.Helper()
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			p := of()
			c.change(part(p))
			err := p.Validate()
			require.ErrorIs(t, err, program.ErrInvalid)
			require.ErrorContains(t, err, c.says)
			if q, err := operator.Unmarshal(wire.Marshal(p)); err == nil {
				require.NoError(t, q.Validate(), "the wire form has no place for what was refused")
			}
		})
	}
}

func whole(p *program.Program) *program.Program { return p }

func firstGraph(p *program.Program) *program.Graph { return &p.Graphs[0] }

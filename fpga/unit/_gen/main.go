// Command _gen writes the assembly of the units' kernels, with avo. It is a module of its own, so that a build of
// Millrace does not need avo: the repository holds the assembly, and `make lint` compares it with the output of this
// command. `make asm` writes it again.
//
// A file here holds one unit's kernels. The comments in a unit's Go files say what a kernel computes and why the
// result is exact; the comments here say how.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/mmcloughlin/avo/build"
)

var units = map[string]func(){
	"bucketize":       bucketizeKernels,
	"checksum":        checksumKernels,
	"clamp":           clampKernels,
	"convert":         convertKernels,
	"encoding":        encodings,
	"fillnull":        fillNull,
	"hextoint":        hexToInt,
	"logn":            logN,
	"positivemodulus": positiveModulus,
	"rowmajor":        rowMajor,
	"sigridhash":      sigridHash,
	"text":            textKernels,
	"zeroextend":      zeroExtend,
}

func main() {
	unit := flag.String("unit", "", "which unit's kernels to write")
	list := flag.Bool("list", false, "list the units")
	flag.Parse()
	if *list {
		for _, name := range slices.Sorted(maps.Keys(units)) {
			fmt.Println(name)
		}
		return
	}
	write, ok := units[*unit]
	if !ok {
		fmt.Fprintf(os.Stderr, "_gen: unknown unit %q\n", *unit)
		os.Exit(2)
	}
	build.ConstraintExpr("!purego")
	write()
	build.Generate()
}

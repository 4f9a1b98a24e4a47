// Command _gen writes the assembly of the units' kernels: with avo for amd64, and with a small assembler of its own for
// arm64 (neon.go). It is a module of its own, so that a build of Millrace does not need avo: the repository holds the
// assembly, and `make lint` compares it with the output of this command. `make asm` writes it again.
//
// A file here holds one unit's kernels, those of arm64 in files of their own whose names begin with neon. The comments
// in a unit's Go files say what a kernel computes and why the result is exact; the comments here say how.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

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
	"snappy":          snappyKernels,
	"sigridhash":      sigridHash,
	"text":            textKernels,
	"zeroextend":      zeroExtend,
}

var neonUnits = map[string]func(a *arm64File){
	"bucketize":       neonBucketize,
	"checksum":        neonChecksum,
	"clamp":           neonClamp,
	"encoding":        neonEncodings,
	"fillnull":        neonFillNull,
	"logn":            neonLogN,
	"positivemodulus": neonPositiveModulus,
	"rowmajor":        neonRowMajor,
	"sigridhash":      neonSigridHash,
}

func main() {
	unit := flag.String("unit", "", "which unit's kernels to write")
	arch := flag.String("arch", "amd64", "for which architecture: amd64 or arm64")
	list := flag.Bool("list", false, "list the architecture's units")
	flag.Parse()
	names := slices.Sorted(maps.Keys(units))
	if *arch == "arm64" {
		names = slices.Sorted(maps.Keys(neonUnits))
	}
	switch {
	case *list:
		fmt.Println(strings.Join(names, "\n"))
		return
	case !slices.Contains(names, *unit):
		fmt.Fprintf(os.Stderr, "_gen: unknown unit %q\n", *unit)
		os.Exit(2)
	case *arch == "arm64":
		var a arm64File
		neonUnits[*unit](&a)
		given := func(name string) string { return flag.Lookup(name).Value.String() } // avo's flags
		if err := a.write(*unit, given("out"), given("stubs"), given("pkg")); err != nil {
			fmt.Fprintf(os.Stderr, "_gen: %v\n", err)
			os.Exit(1)
		}
		return
	}
	write := units[*unit]
	build.ConstraintExpr("!purego")
	write()
	build.Generate()
}

package house

import (
	"path"
	"slices"
	"strings"
)

// floors from the ground up.
var floors = []string{"nvme", "fpga", "sdk", "host", "trainmgr", "control", "capacity", "cmd", "bench"}

// Module is the module's path.
const Module = "github.com/millrace/millrace"

// floor returns the floor of a package path inside the module, or -1 for a package that stands on no floor (internal,
// tools).
func floor(pkg string) int {
	top, _, _ := strings.Cut(pkg, "/")
	return slices.Index(floors, top)
}

// trainmgrMayImport lists the packages of the module that the launcher's package may import.
var trainmgrMayImport = map[string]bool{
	"sdk/dataset": true, "sdk/pipeline": true, "sdk/tensor": true, "host/api": true, "trainmgr/allocation": true,
	"trainmgr/offload": true, "trainmgr/autoscale": true, "trainmgr/combined": true, "trainmgr/delivery": true,
	"trainmgr/inputqueue": true, "trainmgr/metricfile": true, "trainmgr/pacer": true, "trainmgr/profilepass": true,
	"trainmgr/sidemeter": true, "trainmgr/starvation": true,
}

// belowDrives reports whether a package of sdk knows nothing of drives: those that are pure, and the way from a
// partition to a mini-batch, whatever engine computes.
func belowDrives(pkg string) bool {
	for _, name := range []string{"dataset", "pipeline", "tensor", "partition", "target", "slicer", "processor",
		"cpu", "rtl"} {
		if pkg == "sdk/"+name || strings.HasPrefix(pkg, "sdk/"+name+"/") {
			return true
		}
	}
	return false
}

// computes reports whether a package is part of an engine: fpga/engine, the blocks of values in it, or the kernels and
// references of operators.
func computes(pkg string) bool {
	if strings.HasPrefix(pkg, "fpga/operator/") {
		last := pkg[strings.LastIndexByte(pkg, '/')+1:]
		return last == "kernel" || last == "kernels" || last == "reference" || last == "references"
	}
	return strings.HasPrefix(pkg, "fpga/engine") || pkg == "fpga/block"
}

// Check says why a file of package from may not import package to (both relative to the module), or returns "".
func Check(from, to string) string {
	f, t := floor(from), floor(to)
	switch {
	case strings.HasPrefix(to, "examples/") && !strings.HasPrefix(from, "examples/"):
		return "only examples import an example"
	case strings.HasPrefix(to, "examples/"):
		return ""
	case strings.HasPrefix(from, "examples/"):
		if t < 0 || t > slices.Index(floors, "control") || computes(to) {
			return "an example imports what a user may import: nvme, fpga but its engine, sdk, host, trainmgr and control"
		}
		return ""
	case t < 0 && strings.HasPrefix(to, "internal/"):
		return ""
	case f < 0 && strings.HasPrefix(from, "internal/"):
		return "internal packages stand below every floor and import none"
	case f < t:
		return "the arrow runs up from " + floors[f] + " to " + floors[t]
	case from == "trainmgr" && !trainmgrMayImport[to] && !strings.HasPrefix(to, "sdk/pipeline/"):
		return "package trainmgr imports only sdk/dataset, sdk/pipeline and its rooms, sdk/tensor, host/api, and the " +
			"rooms of its own that trainmgrMayImport lists"
	case (from == "trainmgr/allocation" || from == "trainmgr/offload") && to != from:
		return from + " is pure arithmetic and imports no package of the module"
	case from == "trainmgr/autoscale" && to != from && to != "trainmgr/allocation":
		return from + " is a pure law and imports only trainmgr/allocation"
	case f == t && to == "sdk" && belowDrives(from):
		return "the packages of sdk that know no drives do not import package sdk"
	case f > 1 && computes(to) && from != "sdk/cpu":
		return "above fpga only sdk/cpu reaches fpga/engine and the kernels and references of operators"
	case strings.HasPrefix(from, "host/api"):
		if floor(to) == f && to != "host/api" && !strings.HasPrefix(to, "host/api/") {
			return "host/api holds types, no implementation"
		}
	}
	return ""
}

// CheckUnit says why a file of package from that is not a test may not import package to, or returns "". In a unit of
// several packages, reference and kernel do not import each other; they share what package format holds.
func CheckUnit(from, to string) string {
	const units = "fpga/unit/"
	if !strings.HasPrefix(from, units) || !strings.HasPrefix(to, units) {
		return ""
	}
	switch fromReference, toReference := strings.HasSuffix(from, "/reference"), strings.HasSuffix(to, "/reference"); {
	case fromReference && !strings.HasSuffix(to, "/format"):
		return "of the units, a reference imports package format only"
	case toReference:
		return "only tests and other references import the reference of a unit"
	}
	return ""
}

// CheckOperator says why a file of package from that is not a test may not import package to, or returns "". The
// reference of an operator is computed without its kernel and without the engine, and only the reference engine runs
// it. The kernel of an operator is run by the engine, over blocks, and does not need that of another operator.
func CheckOperator(from, to string) string {
	isReference := func(pkg string) bool {
		return strings.HasPrefix(pkg, "fpga/operator/") && path.Base(pkg) == "reference"
	}
	isKernel := func(pkg string) bool {
		return strings.HasPrefix(pkg, "fpga/operator/") && path.Base(pkg) == "kernel"
	}
	switch {
	case (isReference(from) || from == "fpga/rowvalue") &&
		(isKernel(to) || to == "fpga/block" || to == "fpga/operator/kernels" || strings.HasPrefix(to, "fpga/engine")):
		return "the reference of an operator shares nothing but types with its kernel and the engine"
	case isReference(to) && from != "fpga/operator/references",
		to == "fpga/operator/references" && from != "fpga/engine/reference":
		return "only the reference engine, by the list of references, links the reference of an operator"
	case isKernel(from) && (path.Base(to) == "reference" || to == "fpga/rowvalue"):
		return "the kernel of an operator shares nothing but types with references"
	case isKernel(from) && computes(to) && to != "fpga/block":
		return "the kernel of an operator knows of the engine only fpga/block"
	}
	return ""
}

// CheckExternal says why a package may not import a module from outside, or returns "".
func CheckExternal(from, path string) string {
	switch {
	case strings.HasPrefix(path, "go.etcd.io/") && !strings.HasPrefix(from, "control") &&
		!strings.HasPrefix(from, "cmd/"):
		return "only control and cmd link etcd"
	case strings.HasPrefix(path, "github.com/prometheus/") && from != "host/node" && from != "host/node/metrics" &&
		from != "host/exposition" && from != "host/worker" && !strings.HasPrefix(from, "control") &&
		!strings.HasPrefix(from, "cmd/"):
		return "only the daemons (host/node, host/node/metrics, host/exposition, host/worker, control) and " +
			"cmd link Prometheus"
	case strings.HasPrefix(path, "github.com/minio/") && from != "host/source/s3":
		return "only host/source/s3 links the client library of S3"
	case path == "C":
		return "no cgo in the main module"
	}
	return ""
}

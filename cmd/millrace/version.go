package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/control/ledger/format"
	"github.com/millrace/millrace/control/record"
	"github.com/millrace/millrace/control/store"
	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program/wire"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/tensor/arrowipc"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// versionInfo is what `millrace version` prints.
type versionInfo struct {
	Version  string        `json:"version"`
	Commit   string        `json:"commit"`   // empty: the binary was built outside a checkout
	Revision string        `json:"revision"` // the commit under its older name
	Go       string        `json:"go"`
	Platform string        `json:"platform"`
	Formats  formatsOfData `json:"formats"`
}

// String returns the version and the commit.
func (v versionInfo) String() string { return v.Version + " " + v.Commit }

// formatsOfData are the versions of the forms that this binary writes to disks and connections. Each value is the
// constant of the package that writes the form; docs/compatibility.md says which other versions are read.
type formatsOfData struct {
	Program      string `json:"program"`
	Slice        string `json:"slice"`
	SliceResult  string `json:"slice_result"`
	Image        string `json:"image"`
	DriveState   string `json:"drive_state"` // PATH.json of a file: drive
	NVMe         string `json:"nvme"`
	VendorSet    string `json:"vendor_commands"`
	VendorLog    string `json:"vendor_log"`
	Pipeline     string `json:"canonical_pipeline"`
	Manifest     string `json:"manifest"`
	Token        string `json:"token"`
	SealedToken  string `json:"sealed_token"`
	Frame        string `json:"frame"`
	Arrow        string `json:"arrow"`
	Npy          string `json:"npy"`
	Vocabulary   string `json:"vocabulary"`
	JournalEntry string `json:"journal_record"`
	ControlStore string `json:"control_store"`
	API          string `json:"api"`
	APIOldest    string `json:"api_oldest"` // the oldest version of a peer that is served
}

// currentFormats returns the versions of the forms that this binary writes.
func currentFormats() formatsOfData {
	minor := func(major, minor int) string { return fmt.Sprintf("%d.%d", major, minor) }
	return formatsOfData{
		Program:      minor(wire.Major, wire.Minor),
		Slice:        minor(wire.Major, wire.SliceMinor),
		SliceResult:  minor(wire.Major, wire.ResultMinor),
		Image:        minor(image.Major, image.MinorParameters),
		DriveState:   strconv.Itoa(csd.StateVersion),
		NVMe:         minor(nvme.VersionSpec>>16, nvme.VersionSpec>>8&0xff),
		VendorSet:    strconv.Itoa(cs.PreprocessVersion),
		VendorLog:    strconv.Itoa(cs.LogVersion),
		Pipeline:     strconv.Itoa(resolve.CanonicalVersion),
		Manifest:     strconv.Itoa(dataset.ManifestVersion),
		Token:        strconv.Itoa(dataset.TokenVersion),
		SealedToken:  record.TokenMagic,
		Frame:        tensor.FrameFormat4,
		Arrow:        arrowipc.Format2,
		Npy:          strconv.Itoa(tensor.NpyVersion),
		Vocabulary:   minor(vocabulary.Major, vocabulary.Minor),
		JournalEntry: strconv.Itoa(format.RecordVersion),
		ControlStore: store.Format,
		API:          strconv.Itoa(apiv1.Protocol),
		APIOldest:    strconv.Itoa(apiv1.Oldest),
	}
}

func versionCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, the commit and the formats of this binary",
		Long: `Prints the version and the commit of this binary, the Go release and the platform that it was built
for. With --output json it prints the version of every form that the binary writes, too: programs,
images, tokens, manifests, frames, records, the API. docs/compatibility.md says which of them are
stable.`,
		Example: "  millrace version --output json", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			return c.Print(v, func(w io.Writer) { fmt.Fprintf(w, "millrace %s\t%s\t%s\n", v, v.Go, v.Platform) })
		},
	}
}

// buildVersion returns what this binary is. Nodes, control planes and metrics give the same version as `millrace
// version`, and a package's binary the package's version.
func buildVersion() versionInfo {
	version, commit := cli.Version()
	return versionInfo{
		Version: version, Commit: commit, Revision: commit, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Formats: currentFormats(),
	}
}

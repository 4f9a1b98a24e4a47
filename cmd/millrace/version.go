package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version that a package gives its binary (tools/package).
var release string

// versionInfo is what `millrace version` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (c *command) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "What this binary is", Example: "  millrace version --output json", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			return c.print(v, func(w io.Writer) { fmt.Fprintf(w, "millrace %s %s\t%s\t%s\n", v.Version, v.Revision, v.Go, v.Platform) })
		},
	}
}

// buildVersion returns what this binary is. Nodes, control planes and metrics tell the same version as `millrace
// version`, and a package's binary the package's version.
func buildVersion() versionInfo {
	v := versionInfo{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" && info.Main.Version != "(devel)" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Revision = s.Value
			}
		}
	}
	if release != "" {
		v.Version = release
	}
	return v
}

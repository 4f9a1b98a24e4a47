// Command sbom writes the bill of materials of a Go binary as a CycloneDX 1.6 document in JSON: the modules that are
// linked into it, with the hashes under which the module proxy serves them.
//
//	sbom BINARY VERSION
//
// The same binary gives the same bytes.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(to io.Writer, args []string) error {
	if len(args) != 2 {
		return errors.New("want a binary and its version")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	document, err := billOf(info, args[1])
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// bill is the part of a CycloneDX document that this command writes.
type bill struct {
	Format      string       `json:"bomFormat"`
	SpecVersion string       `json:"specVersion"`
	Version     int          `json:"version"`
	Metadata    metadata     `json:"metadata"`
	Components  []component  `json:"components"`
	Depends     []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// billOf returns the bill of a binary.
func billOf(info *debug.BuildInfo, version string) (*bill, error) {
	main := componentOf("application", info.Main.Path, version)
	b := &bill{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{Component: main}}
	compiler := componentOf("library", "std", strings.TrimPrefix(info.GoVersion, "go"))
	b.Components = append(b.Components, compiler)
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := componentOf("library", m.Path, m.Version)
		if m.Sum != "" {
			// h1 is the SHA-256 of a list of the module's files with their SHA-256 (golang.org/x/mod/sumdb/dirhash).
			sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
			if err != nil {
				return nil, fmt.Errorf("the hash of module %s: %w", m.Path, err)
			}
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
		}
		b.Components = append(b.Components, c)
	}
	all := dependency{Ref: main.Ref}
	for _, c := range b.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Depends = append(b.Depends, all)
	return b, nil
}

func componentOf(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}

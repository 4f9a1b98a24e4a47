package main

import "testing"

func TestPackageOf(t *testing.T) {
	for symbol, want := range map[string]string{
		"runtime.mallocgc": "runtime",
		"github.com/millrace/millrace/sdk/tensor.(*MiniBatch).Release":      "github.com/millrace/millrace/sdk/tensor",
		"gopkg.in/yaml%2ev3.yaml_parser_parse":                              "gopkg.in/yaml.v3",
		"type:.eq.net/http.Cookie":                                          "net/http",
		"slices.SortFunc[go.shape.[]github.com/spf13/cobra.Command,go.int]": "slices",
		"go:buildid": "",
	} {
		if got := packageOf(symbol); got != want {
			t.Errorf("%s is of %q, want %q", symbol, got, want)
		}
	}
}

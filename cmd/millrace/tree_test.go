package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/cmd/cli/clitest"
)

// tree is the command line as tests run it.
var tree = clitest.Program{New: newRoot}

// commands lists the command tree, the root first.
func commands() []*cobra.Command { return tree.Commands() }

func TestEveryCommandHasHelpAndAnExampleThatParses(t *testing.T) { tree.CheckHelp(t) }

func TestEveryFlagSaysWhatItIs(t *testing.T) { tree.CheckFlags(t) }

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		assert.Contains(t, must(t, "completion", shell), "millrace")
	}
	assert.Contains(t, must(t, "__complete", "drive", ""), "create")
}

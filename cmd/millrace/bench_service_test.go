package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	benchservice "github.com/millrace/millrace/bench/service"
)

// The first line of the report says that no storage node made the mini-batches.
func TestBenchServiceSaysThatItsNodesAreStandIns(t *testing.T) {
	var out strings.Builder
	printService(&out, &benchservice.Result{Nodes: benchservice.StandInNodes})
	first, _, _ := strings.Cut(out.String(), "\n")
	assert.Contains(t, first, "nodes are stand-ins")
	assert.Contains(t, first, "preprocess nothing")
}

package record

import (
	"slices"
	"strings"
)

// Placement selects the workers that may make a job's splits. Every worker makes the same bytes, so that a placement is
// no part of the job's digest.
type Placement string

// The placements.
const (
	PlacementAuto      Placement = "auto"       // holders of the data first, workers without data for the rest
	PlacementHeld      Placement = "held"       // only holders, with every kind of engine
	PlacementInStorage Placement = "in-storage" // only drives that compute beside their flash
	PlacementNodeCPU   Placement = "node-cpu"   // only CPUs of nodes over plain drives
	PlacementNodeCard  Placement = "node-card"  // only cards in nodes, fed by plain drives
	PlacementPool      Placement = "pool"       // only a pool of workers without data
	PlacementTrainer   Placement = "trainer"    // only each rank's own CPUs
)

// Placements lists the words of JobSpec.placement, the default first.
func Placements() []string {
	var words []string
	for _, p := range []Placement{PlacementAuto, PlacementHeld, PlacementInStorage, PlacementNodeCPU, PlacementNodeCard,
		PlacementPool, PlacementTrainer} {
		words = append(words, string(p))
	}
	return words
}

// validPlacement reports whether a word is a placement.
func validPlacement(word string) bool { return slices.Contains(Placements(), word) }

// placementWords lists the placements for people.
func placementWords() string { return strings.Join(Placements(), ", ") }

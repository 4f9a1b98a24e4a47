// Package sizing sizes a purchase for a training job, once for each placement of the preprocessing: how many drives,
// cards, nodes, network interfaces and racks, the watts and the dollars, and which constraint binds each of them.
//
// # Overview
//
// A [Job] says what is to be stored and how fast the trainers take it. A [Table] holds every figure that a plan rests
// on. Each [Figure] has a value, a range, a kind (measured, modelled, published or assumed) and a source. [Plan] sizes
// each [Mode] and returns a [Report]:
//
//   - the placements, with a count for every constraint; the largest count of a resource binds it;
//   - the verdict: the cheapest placement, and by how much preprocessing in storage wins or loses;
//   - a tornado: which figures move the answer when each alone goes to an end of its range;
//   - the price of a computing drive below which preprocessing in storage is the cheapest;
//   - the cost of every placement as T grows, and the T at which another placement becomes the cheapest;
//   - the figures that the plan used, and how many there are of each kind.
//
// The units are rows, bytes, seconds, watts and dollars. Counts are of the planning horizon's end, after growth.
//
// What the computation, the flash, the device memory and the link of a drive bound are constraints of their own. A
// placement without a figure for its rate has no counts, and says which figure is missing.
//
// # Concurrency
//
// The package is pure. A Table must not be changed while a plan uses it.
//
// # Errors
//
// [ErrFigures] for a table that does not parse or has an impossible figure, [ErrJob] for a job with impossible figures.
//
// # Debugging
//
// Every [Constraint] carries its arithmetic in words. docs/planning.md works examples by hand; the tests compare them.
package sizing

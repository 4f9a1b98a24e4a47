// Package planpage writes a plan as one HTML page that opens without a network and prints well.
//
// # Overview
//
// [Write] writes the page: the verdict, the placements, charts, constraints, and every figure with its kind and source.
// The charts are SVG inside the page. The page has no script and refers to nothing outside itself; its markup is also
// well-formed XML, which a test parses.
//
// # Errors
//
// [Write] returns the writer's errors.
package planpage

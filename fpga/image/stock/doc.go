// Package stock builds stock images: the one that a drive leaves the factory with, and those with the units and the
// parameters of a paper's design.
//
// # Overview
//
// [Image] has every unit of this build. [Named] builds an image by its name in [Names], and [NameOf] finds the name of
// an image by its id. Self-tests are made of the known answers that operators declare (fpga/operator/NAME/answers.go),
// and of vectors that test text, pages, maps, graphs and lookup tables. [Interface] and [Platform] are those of the
// shell of this project's drives.
//
// # Concurrency
//
// The functions keep no state.
//
// # Errors
//
// An error names the operator whose known answers make no vector, or the name that no stock image has.
//
// # Debugging
//
// `millrace image info stock.mimg` lists an image's units and self-tests, and `millrace drive validate` runs them.
package stock

// Package terminal lays out text for a person at a terminal: tables that fit its width, a little colour, and a text
// that is drawn again in place.
//
// # Overview
//
//	terminal.Rows(&text, nodes)                      // a table of structs, whose tags have headings and formats
//	width := terminal.Width(os.Stdout)               // 0 where it is not a terminal
//	shown := terminal.Table(text.String(), width)    // as text/tabwriter would, folded where that is wider
//	screen := terminal.NewScreen(os.Stdout, width)   // Draw replaces what the last Draw wrote
//
// [Table] takes lines whose cells are separated by tabs. Lines with tabs that follow each other make one table. Where a
// table is wider than the terminal, its widest columns become narrower, and their cells go on in further lines of the
// same column; a word that is still too long is cut and ends with an ellipsis. Width 0 folds nothing.
//
// # Colour
//
// [Paint] colours single words that say that something failed or waits. [Colours] reports whether a file is to have
// any: only a terminal, and not with NO_COLOR set (https://no-color.org) or TERM=dumb.
//
// # Concurrency
//
// Functions are pure, except those that ask the terminal. A Screen has one user.
package terminal

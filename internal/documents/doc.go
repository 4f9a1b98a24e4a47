// Package documents reads README.md, CONTRIBUTING.md, SECURITY.md, CHANGELOG.md and docs/*.md, and looks up in the code
// what they name, so that a document fails a test when the code leaves it behind.
//
// # Overview
//
// Links returns the links of a document, Section the text under a heading, Rows the rows of a table,
// CodeSpans the texts between backquotes. Tree.Declares reports whether the code declares a name that a document
// writes as "sdk/dataset.Token" or "sdk/dataset.Token.MarshalBinary".
//
// The tests of this package hold:
//
//   - that every link of every document leads to a file and, behind "#", to a heading;
//   - that every path and every name of the code between backquotes exists;
//   - that every row of a table has as many cells as the table's head;
//   - docs/glossary.md: its order, its form, and that each name is declared in the code;
//   - docs/architecture.md: that the rooms, and the files and functions on a mini-batch's way, exist;
//   - docs/compatibility.md: that every form has golden files, and that every golden file belongs to a form;
//   - CONTRIBUTING.md: that the files it lists exist;
//   - docs/picture.svg: that it is the picture that Draw makes of Overview.
//
// # Concurrency
//
// A Tree may be used from one goroutine at a time; the other functions are pure.
//
// # Errors
//
// Tree.Declares says which part of a name is missing.
//
// # Debugging
//
// A failure names the document and the line. MILLRACE_UPDATE=1 draws docs/picture.svg again.
package documents

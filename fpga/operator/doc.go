// Package operator lists the operators of the drive. An operator is a folder here, NAME, which is the name of its unit
// without underscores:
//
//   - package NAME holds the operator's parameters, with their wire form and what they may be (Op and Definition), and
//     what the catalogue says of it (Entry, of package fpga/catalogue), and known answers (Answers, of package
//     fpga/rowvalue), which the tests of references and the self-test of the stock image use;
//   - package NAME/kernel makes the operator ready to run over blocks of values (fpga/block);
//   - package NAME/reference computes the operator by its definition, a value at a time.
//
// A kernel and a reference share nothing but types. Whoever writes programs imports NAME and links neither of them.
//
// The lists of operators, of kernels and of references are generated from the folders, so that adding an operator edits
// no other file; tools/operatorlists says what a package must declare. Unit numbers belong to the wire form and do not
// follow from the place in a list.
package operator

//go:generate go -C ../../tools run ./operatorlists ../fpga/operator
//go:generate env MILLRACE_UPDATE=1 go test -count=1 -run TestUnits .
//go:generate env MILLRACE_UPDATE=1 go test -count=1 -run TestStockGolden ../image/stock

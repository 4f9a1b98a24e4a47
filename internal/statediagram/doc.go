// Package statediagram draws the tables of state machines in the documentation. A package's test calls Document with
// its table: the test fails where the table contradicts itself, and where the picture in the documentation is not the
// table. MILLRACE_UPDATE=1 writes the picture instead.
//
// A document names the place of a picture by two comments, with the name that the test gives to the machine:
//
//	<!-- states of NAME: written by MILLRACE_UPDATE=1 go test ./DIRECTORY -->
//	<!-- end of states -->
package statediagram

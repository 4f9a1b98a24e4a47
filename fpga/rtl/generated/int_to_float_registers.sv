// The registers of unit int_to_float. Made of units/int_to_float.json; do not edit.
package int_to_float_registers;
endpackage

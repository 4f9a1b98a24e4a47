package mixed

// Reference uses a function, a variable and a method of the kernel.
func Reference(v Value) Value {
	var sum Value
	sum += double(v)
	sum += table[0]
	sum += v.Twice()
	return sum
}

package mixed

type Value int

// Kernel uses the reference.
func Kernel(v Value) Value { return Reference(v) }

var table = [1]Value{2}

func double(v Value) Value { return 2 * v }

func (v Value) Twice() Value { return 2 * v }

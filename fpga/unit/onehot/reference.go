package onehot

// Reference returns the class of an id, or -1.
func Reference(id int64, count int) int64 {
	for class := range int64(count) {
		if class == id {
			return class
		}
	}
	return -1
}

// ReferenceRange returns the class of a number. A class holds the numbers whose distance from lower, in steps, is at
// least its number and less than the next.
func ReferenceRange(x, lower, upper float32, count int) int64 {
	width := upper - lower
	step := width / float32(count)
	distance := x - lower
	steps := distance / step
	for class := range count {
		if steps >= float32(class) && steps < float32(class+1) {
			return int64(class)
		}
	}
	return 0
}

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

// ReferenceRange returns the class of a number from lower to upper, both included: the last class that begins at
// the number or below it, where class k begins at a distance of k steps from lower. Other numbers are of class 0.
func ReferenceRange(x, lower, upper float32, count int) int64 {
	width := upper - lower
	step := width / float32(count)
	distance := x - lower
	steps := distance / step
	for class := count - 1; class > 0; class-- {
		if x >= lower && x <= upper && steps >= float32(class) {
			return int64(class)
		}
	}
	return 0
}

package maptext

// Reference returns the value of one text; ok is false if the table lacks it. Keys need not be sorted.
func Reference(text []byte, keys []string, values []int64) (value int64, ok bool) {
	for i, key := range keys {
		if key == string(text) {
			return values[i], true
		}
	}
	return 0, false
}

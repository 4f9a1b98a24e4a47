package split

import "bytes"

// Reference returns the parts of one text. ok is false if there are too many.
func Reference(text []byte, rule Rule) (parts [][]byte, ok bool) {
	part := []byte{}
	end := func() {
		if len(part) > 0 || rule.KeepEmpty {
			parts = append(parts, part)
		}
		part = []byte{}
	}
	for i := 0; i < len(text); {
		if bytes.HasPrefix(text[i:], []byte(rule.Separator)) {
			end()
			i += len(rule.Separator)
			continue
		}
		part = append(part, text[i])
		i++
	}
	end()
	return parts, len(parts) <= MaxParts
}

package image

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
)

// Difference is one value that two images do not share.
type Difference struct {
	Section string `json:"section"` // the section's name; HEADER for the header
	Path    string `json:"path"`    // as kernel.granted_khz: elements of lists go by their name where they have one
	Was     string `json:"first"`   // empty: the first image has no such value
	Is      string `json:"second"`  // empty: the second has none
}

// Diff lists what differs between two images, section by section in the order of the file. Images with the same id
// differ in BUILD, USER, SIGNATURE and the header's time at most.
func Diff(a, b *Image) []Difference {
	var all []Difference
	add := func(section string, was, is map[string]string) {
		paths := make([]string, 0, len(was))
		for p, v := range was {
			if x, ok := is[p]; !ok || x != v {
				paths = append(paths, p)
			}
		}
		for p := range is {
			if _, ok := was[p]; !ok {
				paths = append(paths, p)
			}
		}
		sort.Strings(paths)
		for _, p := range paths {
			all = append(all, Difference{section, p, was[p], is[p]})
		}
	}
	add("HEADER", headerValues(a), headerValues(b))
	for _, k := range kindsInOrder() {
		add(k.tableName(), sectionValues(a, k), sectionValues(b, k))
	}
	return all
}

// kindsInOrder returns the kinds of sections in the order of the file.
func kindsInOrder() (kinds []Kind) {
	for k := KindUnits; k <= KindParameters; k++ {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Compare(a.orderInFile(), b.orderInFile()) })
	return kinds
}

func headerValues(m *Image) map[string]string {
	return map[string]string{
		"image_id": m.ID.String(), "interface": m.Spec.Interface.String(), "platform": m.Spec.Platform,
		"time": strconv.FormatUint(m.Spec.Time, 10),
	}
}

// sectionValues are the values of a section by path.
func sectionValues(m *Image, k Kind) map[string]string {
	s := m.findSection(k)
	values := make(map[string]string)
	switch {
	case s == nil:
	case k == KindSignature:
		values["key"] = KeyID(m.Signature.Key).String()
		values["signature"] = shortenValue(fmt.Sprintf("%x", m.Signature.Sig))
	case k == KindModules:
		for i := range m.Spec.Modules {
			x := &m.Spec.Modules[i]
			values[x.Name+".bytes"] = strconv.Itoa(len(x.Bytes))
			values[x.Name+".sha256"] = x.Digest().String()
		}
	case k == KindUser:
		values["bytes"] = strconv.Itoa(s.Size)
		values["sha256"] = fmt.Sprintf("%x", s.SHA256)
	default:
		// Parse has checked that this is JSON; numbers stay as they are written.
		var v any
		d := json.NewDecoder(bytes.NewReader(m.bytes[s.Offset : s.Offset+s.Size]))
		d.UseNumber()
		if d.Decode(&v) == nil {
			flattenValue("", v, values)
		}
	}
	return values
}

// flattenValue puts the leaves of a JSON value into a map by path.
func flattenValue(path string, v any, into map[string]string) {
	join := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	switch v := v.(type) {
	case map[string]any:
		for key, x := range v {
			flattenValue(join(key), x, into)
		}
	case []any:
		taken := make(map[string]bool)
		for i, x := range v {
			key := strconv.Itoa(i)
			if m, ok := x.(map[string]any); ok {
				if name, ok := m["name"].(string); ok && name != "" && !taken[name] {
					key = name
				}
			}
			taken[key] = true
			flattenValue(join(key), x, into)
		}
	case nil:
		into[path] = "none"
	default:
		into[path] = shortenValue(fmt.Sprint(v))
	}
}

// shortenValue puts the length and a digest in the place of a value that is too long to be looked at.
func shortenValue(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%d characters, SHA-256 %x", len(s), sum[:8])
}

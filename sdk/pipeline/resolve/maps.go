package resolve

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// Reference refers to a column, or to a feature of a column that is a map.
type Reference struct {
	Column int // in the schema
	key    int64
	text   string // the key of a map whose keys are text
	IsMap  bool
}

// Name returns the name in a pipeline, and the digits of the number at its end.
func (n Reference) Name(schema []columntypes.Column) (name, digits string) {
	name = schema[n.Column].Name
	if !n.IsMap {
		_, digits = pipeline.SplitNumber(name)
		return name, digits
	}
	key := schema[n.Column].Map.KeyName(n.key, n.text)
	if digits = key; schema[n.Column].Map.TextKeys {
		_, digits = pipeline.SplitNumber(n.text)
	}
	return name + "[" + key + "]", digits
}

// matchMap returns the features that a pattern such as "m[1]" or "m[1..3, 7]" names. ok is false if the pattern is of
// another form.
func (x *Index) matchMap(text string) (found []Reference, wrong *problem.Error, ok bool) {
	name, keys, ok := strings.Cut(strings.TrimSuffix(text, "]"), "[")
	if !ok || !strings.HasSuffix(text, "]") {
		return nil, nil, false
	}
	i, there := x.byName[name]
	if !there {
		return nil, patternError(problem.ErrMissingColumn, "%q, of %q, is not in the dataset%s", problem.Shorten(name),
			problem.Shorten(text),
			problem.Suggest(name, x.names())), true
	}
	bad := func(format string, args ...any) ([]Reference, *problem.Error, bool) {
		return nil, patternError(problem.ErrPattern, "%q: %s", problem.Shorten(text), fmt.Sprintf(format, args...)), true
	}
	if c := &x.schema[i]; !c.Map.IsMap() && c.Unsupported == nil {
		return bad("%s is not a map", problem.Shorten(name))
	}
	if x.schema[i].Map.TextKeys {
		texts, why := splitTextKeys(keys)
		if why != "" {
			return bad("%s", why)
		}
		for _, key := range texts {
			found = append(found, Reference{Column: i, text: key, IsMap: true})
		}
		return found, nil, true
	}
	for _, item := range strings.Split(keys, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(item), "..")
		if !isRange {
			last = first
		}
		a, errA := strconv.ParseInt(first, 10, 64)
		b, errB := strconv.ParseInt(last, 10, 64)
		switch {
		case strings.Contains(item, "*"):
			return bad("which features a map holds only its rows tell: name them, as [101] or [101..120, 205]")
		case errA != nil || errB != nil:
			return bad("%q is not a key, want a whole number or a range of them, as 101..120",
				problem.Shorten(strings.TrimSpace(item)))
		case a > b:
			return bad("the first key of %q is above the last", problem.Shorten(strings.TrimSpace(item)))
		case uint64(b)-uint64(a) >= uint64(pipeline.MaxFeatures-len(found)):
			return bad("more than %d features", pipeline.MaxFeatures)
		}
		for k := a; ; k++ {
			found = append(found, Reference{Column: i, key: k, IsMap: true})
			if k == b {
				break
			}
		}
	}
	return found, nil, true
}

// splitTextKeys returns the keys of text that a pattern such as `color, "a, b"` names between brackets. why says what
// is wrong with the pattern.
func splitTextKeys(list string) (keys []string, why string) {
	for {
		list = strings.TrimSpace(list)
		var key string
		if quoted, err := strconv.QuotedPrefix(list); err == nil && list[0] == '"' {
			key, _ = strconv.Unquote(quoted)
			list = strings.TrimSpace(list[len(quoted):])
		} else {
			item, _, _ := strings.Cut(list, ",")
			list = list[len(item):]
			switch key = strings.TrimSpace(item); {
			case strings.Contains(key, "*"):
				return nil, "which features a map holds only its rows tell: name them, as [color] or [color, size]"
			case key == "" || strings.ContainsAny(key, columntypes.KeyMarks):
				return nil, fmt.Sprintf("%q is not a key; write keys with such characters in quotes, as \"a, b\"",
					problem.Shorten(key))
			}
		}
		if keys = append(keys, key); len(keys) > pipeline.MaxFeatures {
			return nil, fmt.Sprintf("more than %d features", pipeline.MaxFeatures)
		}
		if list == "" {
			return keys, ""
		}
		if list[0] != ',' {
			return nil, fmt.Sprintf("%q behind a key, want a comma", problem.Shorten(list))
		}
		list = list[1:]
	}
}

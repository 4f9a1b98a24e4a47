package health

import (
	"bufio"
	"fmt"
	"io"
	"math/big"
	"strings"
)

// disagreements returns where another reader of the SMART log, which printed "name: value" lines later, differs from
// the log. Counters may have grown in the meantime, and a temperature may have moved by two degrees.
func disagreements(r *SMARTLog, printed io.Reader) ([]string, error) {
	said := map[string]*big.Int{}
	lines := bufio.NewScanner(printed)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), ": ")
		if !ok {
			continue
		}
		// "50° Celsius", "100%", "3 [1.54 MB]", "0x00"
		if end := strings.IndexAny(value, " °%"); end >= 0 {
			value = value[:end]
		}
		if n, ok := new(big.Int).SetString(value, 0); ok {
			said[name] = n
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	var list []string
	compare := func(name string, low, high *big.Int) {
		n, ok := said[name]
		switch {
		case !ok:
			list = append(list, fmt.Sprintf("%s: it says nothing", name))
		case n.Cmp(low) < 0 || high != nil && n.Cmp(high) > 0:
			list = append(list, fmt.Sprintf("%s: it says %s, the log read before says %s", name, n, low))
		}
	}
	value := func(v int) *big.Int { return big.NewInt(int64(v)) }
	if r.Temperature != nil && *r.Temperature >= 0 {
		compare("Temperature", value(max(*r.Temperature-2, 0)), value(*r.Temperature+2))
	}
	for name, v := range map[string]*int{"Avail. spare": r.Spare, "Avail. spare threshold": r.Threshold,
		"Percentage used": r.Used} {
		if v != nil {
			compare(name, value(*v), value(*v))
		}
	}
	counter := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
	for name, v := range map[string]*uint64{"Data units read": r.BytesRead, "Data units written": r.BytesWrote} {
		if v != nil {
			compare(name, counter(*v/unit), nil)
		}
	}
	for name, v := range map[string]uint64{
		"Host read commands": r.Reads, "Host write commands": r.Writes, "Controller busy time": r.Busy,
		"Power cycles":   r.PowerCycles,
		"Power on hours": r.PowerOn, "Unsafe shutdowns": r.Unsafe, "Media & data integrity errors": r.MediaErrors,
		"Error information log entries": r.ErrorCount,
	} {
		compare(name, counter(v), nil)
	}
	return list, nil
}

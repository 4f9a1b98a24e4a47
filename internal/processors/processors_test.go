package processors

import (
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace/millrace/internal/shared"
)

func TestAvailable(t *testing.T) {
	got := Available()
	assert.Positive(t, got)
	assert.LessOrEqual(t, got, float64(runtime.NumCPU()))
}

func TestTimeGrows(t *testing.T) {
	if Time() == 0 {
		shared.Missing(t, "the processor time is not known here")
	}
	begin := Time()
	for end := time.Now().Add(time.Minute); Time() == begin; {
		if time.Now().After(end) {
			t.Fatal("a minute of work used no processor time")
		}
	}
}

// TestTimeOfAProcess compares this process's time as others see it with its own.
func TestTimeOfAProcess(t *testing.T) {
	own, seen := Time(), TimeOf(os.Getpid())
	if seen == 0 {
		shared.Missing(t, "the processor time of another process is not known here")
	}
	if after := Time(); seen < own-10*time.Millisecond || seen > after+10*time.Millisecond {
		t.Fatalf("%v, its own time is %v to %v", seen, own, after)
	}
	if gone := TimeOf(1 << 22); gone != 0 { // greater than any id of a process
		t.Fatalf("a process that is not there used %v", gone)
	}
}

// TestThreadTimeIsOfTheThread compares the time of a thread that works with the time of a thread that sleeps.
func TestThreadTimeIsOfTheThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin, known := ThreadTime()
	if !known {
		shared.Missing(t, "the processor time of a thread is not known here")
	}
	ended := make(chan struct{})
	go func() { // on another thread
		defer close(ended)
		work := Time()
		end := time.Now().Add(time.Minute)
		for busy := true; busy; {
			busy = Time()-work < 50*time.Millisecond && time.Now().Before(end)
		}
	}()
	<-ended
	if used, _ := ThreadTime(); used-begin >= 50*time.Millisecond {
		t.Fatalf("a thread that waited used %v", used-begin)
	}
	for end := time.Now().Add(time.Minute); ; {
		if used, _ := ThreadTime(); used-begin >= 10*time.Millisecond {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a minute of work used no processor time")
		}
	}
}

func TestParseMax(t *testing.T) {
	for text, want := range map[string]float64{
		"max 100000\n": math.Inf(1), "30000 100000\n": 0.3, "200000 100000": 2, "": math.Inf(1), "5": math.Inf(1),
		"-1 100000": math.Inf(1), "0 100000": math.Inf(1), "1 0": math.Inf(1), "1 x": math.Inf(1),
		"9007199254740993 1": math.Inf(1),
	} {
		assert.InDelta(t, want, parseMax(text), 0, "%q", text)
	}
	assert.InDelta(t, math.Inf(1), ratio("-1\n", "100000\n"), 0, "no quota in cgroup v1")
	assert.InDelta(t, 1.5, ratio("150000\n", "100000\n"), 0)
}

func TestParseGroups(t *testing.T) {
	assert.Equal(t, groups{unified: "/user.slice/a:b"}, parseGroups("0::/user.slice/a:b\n"))
	assert.Equal(t, groups{unified: "/", cpu: "/job"},
		parseGroups("9:name=systemd:/x\n4:cpu,cpuacct:/job\n1:cpuset:/y\n0::/\nnothing\n2:cpu:relative\n"))
}

func FuzzParse(f *testing.F) {
	f.Add("30000 100000")
	f.Add("4:cpu,cpuacct:/job\n0::/\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got := parseMax(text); !(got > 0) {
			t.Fatal(got)
		}
		parseGroups(text)
	})
}

package csd

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/nvme"
)

// A separate process opens the drive at a path and puts images on it, until it kills itself at a step, or is killed.
const (
	loadPath   = "MILLRACE_TEST_LOAD"
	loadImages = "MILLRACE_TEST_LOAD_IMAGES" // files, separated by the list separator
	loadKill   = "MILLRACE_TEST_LOAD_KILL"   // the step at which to die; empty: never, and go round and round
	loadRegion = "MILLRACE_TEST_LOAD_REGION" // the region whose image changes; empty: 0
)

// TestImageVictim is that process. Tests that start it do not run beside others: a process that is being started holds,
// until it runs, every lock that this one has, and a drive that was closed meanwhile would seem open elsewhere.
func TestImageVictim(t *testing.T) {
	path := os.Getenv(loadPath)
	if path == "" {
		t.Skip("a process that another test starts and kills")
	}
	armed := false
	region, _ := strconv.Atoi(os.Getenv(loadRegion))
	o := Options{Path: path, atStep: func(step string) {
		if armed && step == os.Getenv(loadKill) {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			fmt.Println(err)
			select {}
		}
	}}
	session(t, o, func(d *Drive, c nvme.Conn) {
		fmt.Println("open")
		armed = true
		for round := 0; round == 0 || os.Getenv(loadKill) == ""; round++ {
			for _, file := range filepath.SplitList(os.Getenv(loadImages)) {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				m, err := image.Parse(b)
				require.NoError(t, err)
				slot := uint16(d.Images().Free())
				require.NoError(t, load(t, c, slot, b, m.ID.PUID()))
				require.NoError(t, activateIn(t, c, region, slot))
				fmt.Println("active", m.ID)
			}
		}
	})
}

func victimOf(path string, images []string, kill string, environment ...string) (*exec.Cmd, io.Reader, error) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestImageVictim$", "-test.v")
	cmd.Env = append(os.Environ(), loadPath+"="+path, loadImages+"="+strings.Join(images, string(os.PathListSeparator)),
		loadKill+"="+kill)
	cmd.Env = append(cmd.Env, environment...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, out, cmd.Start()
}

// imageFile writes an image into a file.
func imageFile(t *testing.T, b []byte) string {
	path := filepath.Join(t.TempDir(), "image.mimg")
	require.NoError(t, os.WriteFile(path, b, 0o644))
	return path
}

// TestKillAtEveryStepOfLoading: the old image runs, or the new one, whole; and the next try succeeds.
func TestKillAtEveryStepOfLoading(t *testing.T) {
	_, original := stockImage(t)
	a, am := numbered(t, 7)
	b, bm := numbered(t, 8)
	x, xm := numbered(t, 9)
	for _, before := range []struct {
		name string
		puts func(t *testing.T, c nvme.Conn)
		old  *image.Image
	}{
		{"the first image", func(*testing.T, nvme.Conn) {}, original},
		{"the second", func(t *testing.T, c nvme.Conn) { put(t, c, 1, a, am) }, am},
		{"over the one before", func(t *testing.T, c nvme.Conn) { put(t, c, 1, a, am); put(t, c, 2, b, bm) }, bm},
	} {
		for _, at := range []struct {
			step string
			new  bool // runs afterwards
		}{
			{"image: judged", false}, {"image: written", false}, {"image: renamed", false}, {"image: kept",
				false}, {"image: tested", false},
			{"state: written", false}, {"state: renamed", true}, {"image: active", true},
		} {
			t.Run(before.name+", "+at.step, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "drive")
				session(t, Options{Path: path, Create: true, Size: 1 << 20}, func(_ *Drive, c nvme.Conn) { before.puts(t, c) })
				cmd, out, err := victimOf(path, []string{imageFile(t, x)}, at.step)
				require.NoError(t, err)
				said, err := io.ReadAll(out)
				require.NoError(t, err)
				require.Error(t, cmd.Wait(), "it was killed: %s", said)
				require.Contains(t, string(said), "open\n")
				require.NotContains(t, string(said), "FAIL")

				want := before.old
				if at.new {
					want = xm
				}
				session(t, Options{Path: path}, func(d *Drive, c nvme.Conn) {
					activeIs(t, d, c, want)
					for _, s := range d.Images().Slots {
						assert.Empty(t, s.Reason, "slot %d is whole", s.Slot)
					}
					if at.new {
						return
					}
					put(t, c, uint16(d.Images().Free()), x, xm)
					activeIs(t, d, c, xm)
				})
			})
		}
	}
}

// TestKillWhileImagesChange kills at any moment, many times over (with MILLRACE_LONG many more).
func TestKillWhileImagesChange(t *testing.T) {
	_, original := stockImage(t)
	known := map[image.ID]*image.Image{original.ID: original}
	var files, order []string
	for n := range uint16(3) {
		b, m := numbered(t, 20+n)
		known[m.ID] = m
		files, order = append(files, imageFile(t, b)), append(order, m.ID.String())
	}
	path := filepath.Join(t.TempDir(), "drive")
	session(t, Options{Path: path, Create: true, Size: 1 << 20}, func(*Drive, nvme.Conn) {})
	kills, seen := 5, map[image.ID]bool{}
	if os.Getenv("MILLRACE_LONG") != "" {
		kills = 200
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range kills {
		cmd, out, err := victimOf(path, files, "")
		require.NoError(t, err)
		last, lines := "", bufio.NewScanner(out)
		for n := r.IntN(6); lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "active "); ok {
				last = id
			}
			if n--; n < 0 {
				break
			}
		}
		time.Sleep(time.Duration(r.Int64N(int64(20 * time.Millisecond)))) // any moment may be that of the kill
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "active "); ok {
				last = id
			}
		}
		require.Error(t, cmd.Wait())
		session(t, Options{Path: path}, func(d *Drive, c nvme.Conn) {
			id, ok := d.ActiveImage()
			require.True(t, ok)
			require.Contains(t, known, id)
			activeIs(t, d, c, known[id])
			for _, s := range d.Images().Slots {
				require.Empty(t, s.Reason, "slot %d", s.Slot)
				require.True(t, s.Image == image.ID{} || known[s.Image] != nil)
			}
			// The image that was reported active is active, or the image after it.
			if k := slices.Index(order, last); k >= 0 {
				require.Contains(t, []string{last, order[(k+1)%len(order)]}, id.String())
			}
			seen[id] = true
		})
	}
	t.Logf("%d kills, %d images found active", kills, len(seen))
}

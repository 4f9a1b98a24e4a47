package terminal

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pseudoTerminal returns both ends of a terminal of a given number of columns.
func pseudoTerminal(t *testing.T, columns uint16) (controller, terminal *os.File) {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = controller.Close() })
	fd := int(controller.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return controller, terminal
}

func TestWidthAndColoursOfATerminal(t *testing.T) {
	t.Setenv("COLUMNS", "")
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	_, terminal := pseudoTerminal(t, 72)
	assert.Equal(t, 72, Width(terminal))
	assert.True(t, Colours(terminal))
	t.Setenv("COLUMNS", "100")
	assert.Equal(t, 100, Width(terminal), "what the shell says holds")
	t.Setenv("COLUMNS", "3")
	assert.Equal(t, leastWidth, Width(terminal))
	t.Setenv("COLUMNS", "no number")
	assert.Equal(t, 72, Width(terminal))
	t.Setenv("NO_COLOR", "1")
	assert.False(t, Colours(terminal))
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	assert.False(t, Colours(terminal))
}

// A failure is red on a terminal, and drawn again in place.
func TestScreenOnATerminal(t *testing.T) {
	t.Setenv("COLUMNS", "")
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	controller, terminal := pseudoTerminal(t, 30)
	s := NewScreen(terminal, Width(terminal))
	require.NoError(t, s.Draw("state  failed: a page is damaged and more\n"))
	buf := make([]byte, 1000)
	n, err := controller.Read(buf)
	require.NoError(t, err)
	assert.Equal(t, "\x1b[Jstate  "+Red.Text("failed")+": a page is dama…\r\n", string(buf[:n]))
}

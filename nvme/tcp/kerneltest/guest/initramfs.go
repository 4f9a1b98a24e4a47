package guest

import (
	"bufio"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

//go:embed init.sh
var initScript []byte

//go:embed shell.sh
var shellScript []byte

// network lists the modules that a guest needs for its network card; kernel 6.12 has most of them built in.
var network = []string{"?virtio_pci", "virtio_net"}

// writeInitramfs makes the archive that a guest starts from.
func writeInitramfs(file, guests string, o *Options) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("make initramfs: %w", err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	a := newArchive(w)
	for _, dir := range []string{"proc", "sys", "dev", "tmp", "mnt", "run", "var/lock", "etc/nvme", "guest"} {
		a.dir(dir)
	}
	a.file("init", initScript)
	a.file("guest/shell", shellScript)
	a.file("guest/script", []byte(o.Script))
	a.file("guest/environment", []byte(environment(o.Env)))
	root := filepath.Join(guests, "root")
	if err := addRoot(a, root, o.Programs); err != nil {
		return err
	}
	if err := addModules(a, filepath.Join(guests, "kernels", o.Kernel, "modules"), o.Modules); err != nil {
		return err
	}
	for _, name := range sortedKeys(o.Files) {
		a.file(name, o.Files[name])
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return w.Flush()
}

func addRoot(a *archive, root string, programs []string) error {
	add := func(name, source string) error {
		data, err := os.ReadFile(source)
		if err != nil {
			return fmt.Errorf("add %s to the initramfs: %w", name, err)
		}
		a.file(name, data)
		return nil
	}
	if err := add("bin/busybox", filepath.Join(root, "bin/busybox")); err != nil {
		return err
	}
	added := map[string]bool{}
	for _, name := range programs {
		p, err := findProgram(root, name)
		if err != nil {
			return err
		}
		p.needs[p.path] = p.source
		for _, at := range sortedKeys(p.needs) {
			if added[at] {
				continue
			}
			added[at] = true
			if err := add(at, p.needs[at]); err != nil {
				return err
			}
		}
	}
	if _, err := os.Stat(filepath.Join(root, "etc/mke2fs.conf")); err == nil {
		return add("etc/mke2fs.conf", filepath.Join(root, "etc/mke2fs.conf"))
	}
	return nil
}

func addModules(a *archive, folder string, names []string) error {
	modules, err := moduleOrder(folder, append(append([]string{}, network...), names...))
	if err != nil {
		return err
	}
	var order strings.Builder
	for _, m := range modules {
		data, err := os.ReadFile(m.file)
		if err != nil {
			return fmt.Errorf("add a module: %w", err)
		}
		at := "/modules/" + filepath.Base(m.file)
		a.file(at, data)
		order.WriteString(strings.TrimSpace(at+" "+m.parameters) + "\n")
	}
	a.file("guest/modules", []byte(order.String()))
	return nil
}

// environment writes the variables as shell assignments, quoted.
func environment(env map[string]string) string {
	var b strings.Builder
	for _, name := range sortedKeys(env) {
		fmt.Fprintf(&b, "%s='%s'\n", name, strings.ReplaceAll(env[name], "'", `'\''`))
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

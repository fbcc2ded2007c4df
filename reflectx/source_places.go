package reflectx

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/mod/modfile"
)

// places finds the directory with the source of a package. It knows the directory of each package
// that this process has seen, and the modules around them. Packages of other modules are described by
// the file of mcpkit gen.
type places struct {
	mu      sync.Mutex
	dirs    map[string]string // by import path, without _test. Guarded by mu.
	unknown map[string]bool   // the import paths that were looked for in vain. Guarded by mu.
}

// seen holds the packages that Methods and Compile have seen, so that callers need not pass them
// around.
var seen = newPlaces()

func newPlaces() *places { return &places{dirs: map[string]string{}, unknown: map[string]bool{}} }

// funcFile returns the import path and the file of a function, or "" if unknown.
func funcFile(fn reflect.Value) (pkgPath, file string) {
	f := runtime.FuncForPC(fn.Pointer())
	if f == nil {
		return "", ""
	}
	file, _ = f.FileLine(f.Entry())
	pkgPath, _ = splitFuncName(f.Name())
	return pkgPath, file
}

// add adds a file of the package, named as in package runtime.
func (p *places) add(pkgPath, file string) {
	if pkgPath == "" || !strings.HasSuffix(file, ".go") || !filepath.IsAbs(file) { // with -trimpath, file is not absolute
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dirs[strings.TrimSuffix(pkgPath, "_test")] = filepath.Dir(filepath.FromSlash(file))
	clear(p.unknown)
}

// find returns the directory of the package, or "" if it is not found.
func (p *places) find(pkgPath string) string {
	pkgPath = strings.TrimSuffix(pkgPath, "_test") // which is in the same directory
	p.mu.Lock()
	defer p.mu.Unlock()
	if dir := p.dirs[pkgPath]; dir != "" || p.unknown[pkgPath] {
		return dir
	}
	wanted := pkgPath
	if wanted == "main" {
		wanted = programPath()
	}
	for _, known := range p.dirs {
		root, module := moduleOf(known)
		rest, ok := within(wanted, module)
		if !ok || module == "" {
			continue
		}
		dir := filepath.Join(root, filepath.FromSlash(rest))
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		if inner, _ := moduleOf(dir); inner == root {
			p.dirs[pkgPath] = dir
			return dir
		}
	}
	p.unknown[pkgPath] = true
	return ""
}

// moduleOf returns the root and the path of the module that contains the directory, or "".
func moduleOf(dir string) (root, module string) {
	for dir != "" {
		if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			return dir, modfile.ModulePath(data)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return "", ""
}

package reflectx

import (
	"os"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
)

// places finds the source of packages, and reads it once, since it does not change while the program
// runs. It knows the directory of each package that Methods and Compile have seen, and by them those of
// the program's module.
type places struct {
	module string // the path of the program's module

	mu    sync.Mutex
	dirs  map[string]string   // by import path, without _test. Guarded by mu.
	found map[string]packages // by directory. Guarded by mu.
}

// onDisk is shared, so that callers need not pass it around.
var onDisk = newPlaces(buildInfo().Main.Path)

func newPlaces(module string) *places {
	return &places{module: module, dirs: map[string]string{}, found: map[string]packages{}}
}

// funcFile returns the import path and the file of a function.
func funcFile(fn reflect.Value) (pkgPath, file string) {
	f := runtime.FuncForPC(fn.Pointer())
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
	p.dirs[strings.TrimSuffix(pkgPath, "_test")] = path.Dir(file)
}

// of returns the descriptions of the package of t by key.
func (p *places) of(t reflect.Type) map[string]string {
	if t.PkgPath() == "" || t.Name() == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	dir := p.find(t.PkgPath())
	found, ok := p.found[dir]
	if !ok {
		found = collect(os.DirFS(dir), true)
		p.found[dir] = found
	}
	name, _, _ := strings.Cut(t.String(), ".") // reflect puts the name in the package clause before that of the type
	return found[name]
}

// find returns the directory of the package, or "", in which nothing is, if it is not known. The caller holds p.mu.
func (p *places) find(pkgPath string) string {
	pkgPath = strings.TrimSuffix(pkgPath, "_test") // which is in the same directory
	if dir := p.dirs[pkgPath]; dir != "" {
		return dir
	}
	below, ok := p.inModule(pkgPath)
	if !ok {
		return ""
	}
	for known, dir := range p.dirs {
		if rest, ok := p.inModule(known); ok && strings.HasSuffix(dir, rest) {
			return strings.TrimSuffix(dir, rest) + below
		}
	}
	return ""
}

// inModule returns the part of an import path below the program's module.
func (p *places) inModule(pkgPath string) (rest string, ok bool) {
	if pkgPath == "main" {
		pkgPath = programPath()
	}
	rest, ok = strings.CutPrefix(pkgPath, p.module)
	return rest, ok && p.module != "" && (rest == "" || rest[0] == '/')
}

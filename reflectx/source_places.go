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

// places finds the directory with the source of a package. It knows one file of each package that
// this process has seen, and the modules around these files. Packages of other modules are described
// by the file of mcpkit gen.
type places struct {
	mu    sync.Mutex
	files map[string]string // by import path: a file of the package. Guarded by mu.
	found map[string]string // by import path: the directory, or "". Guarded by mu.
}

func newPlaces() *places { return &places{files: map[string]string{}, found: map[string]string{}} }

// seen holds the files that Methods and Compile have seen, so that callers need not pass them
// around.
var seen = newPlaces()

// goroot returns the directory of the standard library when the program was built, or "".
var goroot = sync.OnceValue(func() string {
	_, file := funcFile(reflect.ValueOf(strings.ToUpper))
	root, _ := strings.CutSuffix(file, "strings/strings.go")
	return filepath.FromSlash(root)
})

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
	if root := goroot(); root != "" && strings.HasPrefix(filepath.FromSlash(file), root) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files[pkgPath] == "" {
		p.files[pkgPath] = file
		clear(p.found)
	}
}

// find returns the directory of the package, or "" if it is not found.
func (p *places) find(pkgPath string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	dir, ok := p.found[pkgPath]
	if !ok {
		dir = p.search(strings.TrimSuffix(pkgPath, "_test")) // a test package is in the same directory
		p.found[pkgPath] = dir
	}
	return dir
}

func (p *places) search(pkgPath string) string {
	for _, known := range []string{pkgPath, pkgPath + "_test"} {
		if file := p.files[known]; file != "" {
			return existing(filepath.Dir(filepath.FromSlash(file)))
		}
	}
	if pkgPath == "main" {
		if pkgPath = programPath(); pkgPath == "" {
			return ""
		}
	}
	for _, file := range p.files {
		root, module := moduleOf(filepath.Dir(filepath.FromSlash(file)))
		if rest, ok := within(pkgPath, module); ok && module != "" {
			dir := existing(filepath.Join(root, filepath.FromSlash(rest)))
			if inner, _ := moduleOf(dir); dir != "" && inner == root {
				return dir
			}
		}
	}
	return ""
}

// moduleOf returns the root and the path of the module that contains the directory, or "".
func moduleOf(dir string) (root, module string) {
	for {
		if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			return dir, modfile.ModulePath(data)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", ""
		}
		dir = parent
	}
}

// existing returns dir if it is a directory, and "" otherwise.
func existing(dir string) string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

package reflectx

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// places finds the directory with the source of a package. It knows one file of each package that
// this process has seen, and searches the modules of these files.
type places struct {
	cache string // the module cache, or ""

	mu      sync.Mutex
	files   map[string]string // by import path: a file of the package. Guarded by mu.
	found   map[string]string // by import path: the directory, or "". Guarded by mu.
	modules map[string]*goMod // by directory. Guarded by mu.
	order   []*goMod          // the modules, in the order in which they were found. Guarded by mu.
}

func newPlaces(cache string) *places {
	return &places{cache: cache, files: map[string]string{}, found: map[string]string{}, modules: map[string]*goMod{}}
}

// seen holds the files that Methods and Compile have seen, so that callers need not pass them
// around.
var seen = newPlaces(moduleCache())

// moduleCache returns the directory of the go command's module cache, according to the environment.
func moduleCache() string {
	if dir := os.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	if list := filepath.SplitList(os.Getenv("GOPATH")); len(list) > 0 && list[0] != "" {
		return filepath.Join(list[0], "pkg", "mod")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, "go", "pkg", "mod")
	}
	return ""
}

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
	for _, known := range slices.Sorted(maps.Keys(p.files)) {
		p.addModule(filepath.Dir(filepath.FromSlash(p.files[known])))
	}
	// The innermost of nested modules contains the package.
	inner := slices.SortedStableFunc(slices.Values(p.order), func(a, b *goMod) int { return cmp.Compare(len(b.path), len(a.path)) })
	for _, m := range inner {
		if rest, ok := within(pkgPath, m.path); ok {
			if dir := existing(filepath.Join(m.dir, filepath.FromSlash(rest))); dir != "" {
				return dir
			}
		}
	}
	for _, m := range p.order {
		if dir := p.required(m, pkgPath); dir != "" {
			return dir
		}
	}
	return ""
}

// A goMod is a module on disk.
type goMod struct {
	path, dir string
	file      *modfile.File // nil if it cannot be parsed
}

// addModule adds the module that contains dir, and the other modules of its workspace.
func (p *places) addModule(dir string) {
	root := upwards(dir, "go.mod")
	if _, ok := p.modules[root]; ok || root == "" {
		return
	}
	m := &goMod{dir: root}
	p.modules[root] = m
	name := filepath.Join(root, "go.mod")
	data, err := os.ReadFile(name)
	if m.path = modfile.ModulePath(data); err != nil || m.path == "" {
		return
	}
	m.file, _ = modfile.Parse(name, data, nil)
	p.order = append(p.order, m)
	workspace := upwards(root, "go.work")
	if workspace == "" {
		return
	}
	name = filepath.Join(workspace, "go.work")
	if data, err = os.ReadFile(name); err != nil {
		return
	}
	if file, err := modfile.ParseWork(name, data, nil); err == nil {
		for _, use := range file.Use {
			p.addModule(resolve(workspace, use.Path))
		}
	}
}

// required finds a package in the modules that m requires.
func (p *places) required(m *goMod, pkgPath string) string {
	if dir := existing(filepath.Join(m.dir, "vendor", filepath.FromSlash(pkgPath))); dir != "" || m.file == nil {
		return dir
	}
	// The module with the longest matching path contains the package.
	var best module.Version
	choose := func(v module.Version) {
		if _, ok := within(pkgPath, v.Path); ok && len(v.Path) > len(best.Path) {
			best = v
		}
	}
	for _, r := range m.file.Require {
		choose(r.Mod)
	}
	for _, r := range m.file.Replace { // a replaced module need not be required by name
		choose(r.Old)
	}
	rest, _ := within(pkgPath, best.Path)
	for _, r := range m.file.Replace {
		if r.Old.Path == best.Path {
			best = r.New
		}
	}
	if best.Path == "" {
		return ""
	}
	if best.Version == "" {
		return existing(filepath.Join(resolve(m.dir, best.Path), filepath.FromSlash(rest)))
	}
	name, err := module.EscapePath(best.Path)
	version, err2 := module.EscapeVersion(best.Version)
	if err != nil || err2 != nil || p.cache == "" {
		return ""
	}
	return existing(filepath.Join(p.cache, filepath.FromSlash(name+"@"+version), filepath.FromSlash(rest)))
}

// upwards returns the nearest directory, from dir upwards, that contains the named file, or "".
func upwards(dir, name string) string {
	for {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func resolve(base, dir string) string {
	dir = filepath.FromSlash(dir)
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(base, dir)
}

// existing returns dir if it is a directory, and "" otherwise.
func existing(dir string) string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

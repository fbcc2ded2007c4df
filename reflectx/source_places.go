package reflectx

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A knownFiles holds one file of each package that this process has seen, to find the other files
// of the package.
type knownFiles struct {
	mu    sync.Mutex
	files map[string]string // by import path. Guarded by mu.
	news  atomic.Int64      // number of packages
}

// known holds the files that Methods and Compile have seen. Every Source uses it, so callers need
// not pass it around.
var known knownFiles

func (k *knownFiles) add(pkgPath, file string) {
	if pkgPath == "" || !strings.HasSuffix(file, ".go") {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.files[pkgPath] != "" {
		return
	}
	if k.files == nil {
		k.files = map[string]string{}
	}
	k.files[pkgPath] = filepath.ToSlash(file)
	k.news.Add(1)
}

// all returns a copy of the files by import path.
func (k *knownFiles) all() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.files)
}

// funcFile returns the import path and the file of a function, or "" if unknown.
func funcFile(fn reflect.Value) (pkgPath, file string) {
	if fn.Kind() != reflect.Func || fn.IsNil() {
		return "", ""
	}
	f := runtime.FuncForPC(fn.Pointer())
	if f == nil {
		return "", ""
	}
	file, _ = f.FileLine(f.Entry())
	pkgPath, _ = splitFuncName(f.Name())
	return pkgPath, file
}

// places finds the directory with the source of a package.
type places struct {
	mu      sync.Mutex
	dirs    map[string]string  // by import path: the directory of a known file. Guarded by mu.
	paths   map[string]string  // from the linker's names such as "main" to the import path. Guarded by mu.
	modules map[string]*module // by directory; nil if there is no go.mod. Guarded by mu.
	taken   int64              // number of known files that are in dirs and paths. Guarded by mu.
	own     knownFiles         // files from AddFunc and Locate
	started bool               // the program's own modules have been added. Guarded by mu.
	order   []*module          // the modules, in the order they were found. Guarded by mu.

	// Facts about the program; tests replace them.
	known      *knownFiles
	workDir    func() (string, error)
	executable func() (string, error)
	build      func() (*debug.BuildInfo, bool)
	cache      string // the module cache, or ""
	goroot     string // the directory of the standard library's packages, or ""
}

func newPlaces() *places {
	return &places{
		dirs: map[string]string{}, paths: map[string]string{}, modules: map[string]*module{},
		known: &known, workDir: os.Getwd, executable: os.Executable, build: debug.ReadBuildInfo,
		cache: moduleCache(), goroot: standardLibrary(),
	}
}

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

// standardLibrary returns the directory of the standard library when the program was built.
func standardLibrary() string {
	_, file := funcFile(reflect.ValueOf(strings.ToUpper))
	root, ok := strings.CutSuffix(filepath.ToSlash(file), "strings/strings.go")
	if !ok || root == "" {
		return ""
	}
	return filepath.FromSlash(root)
}

// add adds a file of the package.
func (p *places) add(pkgPath, file string) { p.own.add(pkgPath, file) }

// news changes whenever more packages may be found than before.
func (p *places) news() int64 { return p.own.news.Load() + p.known.news.Load() }

// take adds files that have become known.
func (p *places) take() {
	news := p.news()
	if news == p.taken {
		return
	}
	p.taken = news
	for _, files := range []map[string]string{p.own.all(), p.known.all()} {
		for _, pkgPath := range slices.Sorted(maps.Keys(files)) {
			file := files[pkgPath]
			dir := path.Dir(file)
			if !filepath.IsAbs(filepath.FromSlash(file)) {
				// -trimpath: the import path, with the version unless it is the main module.
				p.paths[pkgPath] = dir
			} else if dir = filepath.FromSlash(dir); p.dirs[pkgPath] == "" && isDir(dir) {
				p.dirs[pkgPath] = dir
				p.addModule(dir)
			}
		}
	}
}

// find returns the directory of the package, or "" if it is not found.
func (p *places) find(pkgPath string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take()
	dir := p.locate(pkgPath)
	if dir == "" || p.goroot != "" && strings.HasPrefix(dir+string(filepath.Separator), p.goroot) {
		return ""
	}
	return dir
}

func (p *places) locate(pkgPath string) string {
	if dir := p.dirs[pkgPath]; dir != "" {
		return dir
	}
	// A test package is in the same directory.
	base, isTest := strings.CutSuffix(pkgPath, "_test")
	if isTest {
		if dir := p.dirs[base]; dir != "" {
			return dir
		}
	}
	importPath := base
	if trimmed, ok := p.paths[pkgPath]; ok {
		// -trimpath writes the import path plus the version.
		if strings.Contains(trimmed, "@") {
			return p.inCache(trimmed)
		}
		importPath = trimmed
	} else if pkgPath == "main" {
		if info, ok := p.build(); ok {
			importPath = info.Path
		}
	}
	p.start()
	// The innermost of nested modules contains the package.
	found, longest := "", 0
	for _, m := range p.order {
		if rest, ok := within(importPath, m.path); ok && len(m.path) > longest {
			if dir := existing(filepath.Join(m.dir, filepath.FromSlash(rest))); dir != "" {
				found, longest = dir, len(m.path)
			}
		}
	}
	if found != "" {
		return found
	}
	for _, m := range p.order {
		if dir := p.required(m, importPath); dir != "" {
			return dir
		}
	}
	return ""
}

// start finds the program's own module, once.
func (p *places) start() {
	if p.started {
		return
	}
	p.started = true
	wd, err := p.workDir()
	if err != nil {
		return
	}
	root := upwards(wd, "go.mod")
	work := upwards(wd, "go.work")
	if work != "" && os.Getenv("GOWORK") != "off" && p.trusted(work) {
		for _, use := range parseWork(filepath.Join(work, "go.work")) {
			p.addModule(resolve(work, use))
		}
	}
	if root != "" && p.trusted(root) {
		p.addModule(root)
	}
}

// trusted reports whether the program may use descriptions from the module in dir: the program is
// in that module, or the go command has just built it.
func (p *places) trusted(dir string) bool {
	exe, err := p.executable()
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if rel, err := filepath.Rel(dir, exe); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return true
	}
	for _, elem := range strings.Split(filepath.ToSlash(exe), "/") {
		if strings.HasPrefix(elem, "go-build") {
			return true
		}
	}
	return false
}

// addModule adds the module that contains dir.
func (p *places) addModule(dir string) {
	root := upwards(dir, "go.mod")
	if root == "" {
		return
	}
	if _, ok := p.modules[root]; ok {
		return
	}
	m := parseModule(root)
	p.modules[root] = m
	if m != nil {
		p.order = append(p.order, m)
	}
}

// required finds a package in the modules that m requires.
func (p *places) required(m *module, importPath string) string {
	if dir := filepath.Join(m.dir, "vendor", filepath.FromSlash(importPath)); isDir(dir) {
		return dir
	}
	// The module with the longest matching path contains the package.
	best, rest := "", ""
	for path := range m.require {
		if r, ok := within(importPath, path); ok && len(path) > len(best) {
			best, rest = path, r
		}
	}
	if best == "" {
		return ""
	}
	if to, ok := m.replace[best]; ok {
		if to.version == "" {
			return existing(filepath.Join(resolve(m.dir, to.path), filepath.FromSlash(rest)))
		}
		return p.inCache(path.Join(to.path+"@"+to.version, rest))
	}
	version := m.require[best]
	if info, ok := p.build(); ok {
		for _, dep := range info.Deps {
			if dep.Path == best && dep.Replace == nil {
				version = dep.Version // the version built, if another module requires a newer one
			}
		}
	}
	return p.inCache(path.Join(best+"@"+version, rest))
}

// inCache returns the directory of a package, "example.com/mod@v1.2.3/pkg", in the module cache.
func (p *places) inCache(versioned string) string {
	if p.cache == "" {
		return ""
	}
	// Capitals are written as '!' and the small letter, for case-insensitive file systems.
	var b strings.Builder
	mod, rest, _ := strings.Cut(versioned, "@")
	version, pkg, _ := strings.Cut(rest, "/")
	for _, r := range mod + "@" + version {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte('!')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return existing(filepath.Join(p.cache, filepath.FromSlash(b.String()), filepath.FromSlash(pkg)))
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

func existing(dir string) string {
	if isDir(dir) {
		return dir
	}
	return ""
}

func isDir(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

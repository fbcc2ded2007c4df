// Package scaffold writes the files of a new module with a server.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"
)

//go:embed files
var files embed.FS

// targets are the files of a module, by template.
var targets = []struct{ template, file string }{
	{"main.go.tmpl", "main.go"},
	{"service.go.tmpl", "service.go"},
	{"service_test.go.tmpl", "service_test.go"},
	{"Dockerfile.tmpl", "Dockerfile"},
	{"dockerignore.tmpl", ".dockerignore"},
	{"gitignore.tmpl", ".gitignore"},
	{"ci.yml.tmpl", ".github/workflows/ci.yml"},
	{"manifest.json.tmpl", "bundle/manifest.json"},
	{"README.md.tmpl", "README.md"},
	{"go.mod.tmpl", "go.mod"},
}

// A Module describes a new module.
type Module struct {
	Dir     string // where it is written; new or empty
	Path    string // the module path
	Version string // of the library; "v0.0.0" with Library
	Library string // the folder of a clone of the library; "" for a published version
}

// nonWord matches what separates words in a name.
var nonWord = regexp.MustCompile(`[^A-Za-z0-9]+`)

// Name returns the name of the server, such as "my-shop".
func (m *Module) Name() string {
	base := m.Path[strings.LastIndex(m.Path, "/")+1:]
	return strings.ToLower(strings.Trim(nonWord.ReplaceAllString(base, "-"), "-"))
}

// Type returns the name of the service's type, such as "MyShop".
func (m *Module) Type() string {
	var b strings.Builder
	for _, word := range nonWord.Split(m.Path[strings.LastIndex(m.Path, "/")+1:], -1) {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	name := b.String()
	if !token.IsExported(name) || taken[name] { // such as "2shop"
		return "Service" + name
	}
	return name
}

// taken are the types of the templates.
var taken = map[string]bool{"Item": true, "FindInput": true}

// Replacement returns the folder of the library as go.mod has it.
func (m *Module) Replacement() string { return modfile.AutoQuote(filepath.ToSlash(m.Library)) }

// Requires returns the require directives of the library's go.mod, so that the new module builds
// without a download. They are more than it needs; go mod tidy removes the rest.
func (m *Module) Requires() (string, error) {
	if m.Library == "" {
		return "", nil
	}
	gomod, err := os.ReadFile(filepath.Join(m.Library, "go.mod"))
	if err != nil {
		return "", err
	}
	return strings.Join(requires.FindAllString(string(gomod), -1), "\n"), nil
}

var requires = regexp.MustCompile(`(?s)require \(.*?\n\)\n`)

// Write writes the files. It fails if the folder has files already.
func (m *Module) Write() error {
	entries, err := os.ReadDir(m.Dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty; name a new folder", m.Dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, t := range targets {
		text, err := m.render(t.template)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(m.Dir, filepath.FromSlash(t.file)), text); err != nil {
			return err
		}
	}
	if m.Library == "" {
		return nil
	}
	sums, err := os.ReadFile(filepath.Join(m.Library, "go.sum"))
	if err != nil {
		return err
	}
	return write(filepath.Join(m.Dir, "go.sum"), sums)
}

func (m *Module) render(name string) ([]byte, error) {
	t, err := template.ParseFS(files, "files/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, m); err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, ".go.tmpl") {
		return format.Source(b.Bytes())
	}
	return b.Bytes(), nil
}

func write(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

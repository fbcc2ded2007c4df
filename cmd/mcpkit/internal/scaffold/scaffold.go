// Package scaffold writes the files of a new module with a server.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"
)

// files are the templates of the files of a module, at their paths.
//
//go:embed all:files
var files embed.FS

// A Module describes a new module.
type Module struct {
	Dir     string // where it is written; new or empty
	Path    string // the module path
	Version string // of the library; "v0.0.0" with Library
	Library string // the folder of a clone of the library; "" for a published version
	Echo    bool   // over HTTP it is an echo app
	Tokens  bool   // which accepts only callers with a token
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
	if err := fs.WalkDir(files, "files", m.writeTemplate); err != nil {
		return err
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

// writeTemplate is called for each template, and for their folders.
func (m *Module) writeTemplate(path string, d fs.DirEntry, err error) error {
	if err != nil || d.IsDir() {
		return err
	}
	t, err := template.ParseFS(files, path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, m); err != nil {
		return err
	}
	file, text := strings.TrimSuffix(strings.TrimPrefix(path, "files/"), ".tmpl"), b.Bytes()
	if strings.HasSuffix(file, ".go") {
		if text, err = format.Source(text); err != nil {
			return err
		}
	}
	return write(filepath.Join(m.Dir, filepath.FromSlash(file)), text)
}

func write(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

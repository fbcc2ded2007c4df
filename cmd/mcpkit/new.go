package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/scaffold"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
)

// newModule holds the flags of the command new.
type newModule struct {
	path    string
	library string
	noTidy  bool
	echo    bool
	oauth   bool
}

func newCommand(std streams) *cobra.Command {
	var n newModule
	cmd := &cobra.Command{
		Use:   "new FOLDER",
		Short: "Write a new module with a server, a test, a Dockerfile and CI",
		Long: `Writes a module with a server into a new folder: a service with tools and a
resource, a test, a Dockerfile, and a workflow for GitHub Actions. The module
has mcpkit as a tool, so that "go tool mcpkit" works in it.`,
		GroupID: groupSource,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(cmd, n.run(cmd.Context(), args[0], std))
		},
	}
	cmd.Flags().StringVar(&n.path, "module", "", "the module `path`, such as github.com/ann/shop; default: example.com/ and the name of the folder")
	cmd.Flags().StringVar(&n.library, "library", "", "the `folder` of a clone of mcpkit to use; default: that of which this program was built, if it was built from one")
	cmd.Flags().BoolVar(&n.echo, "echo", false, "over HTTP, serve in an echo app")
	cmd.Flags().BoolVar(&n.oauth, "oauth", false, "like --echo, for callers with a token of an authorization server (OAuth 2.1)")
	cmd.Flags().BoolVar(&n.noTidy, "no-tidy", false, "do not run go mod tidy, which may have to download modules")
	return cmd
}

// run writes the module into the folder.
func (n *newModule) run(ctx context.Context, folder string, std streams) error {
	dir, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	m := scaffold.Module{Dir: dir, Path: n.path, Version: moduleVersion(), Echo: n.echo || n.oauth, Tokens: n.oauth}
	if m.Path == "" {
		m.Path = filepath.Base(dir)
		m.Path = "example.com/" + m.Name()
	}
	if module.CheckPath(m.Path) != nil || m.Name() == "" {
		return fmt.Errorf("%q is not a module path; write for example --module example.com/shop", m.Path)
	}
	if err := n.findLibrary(&m); err != nil {
		return err
	}
	if err := m.Write(); err != nil {
		return err
	}
	if !n.noTidy {
		tidy := services.Go(ctx, "mod", "tidy")
		tidy.Dir, tidy.Stdout, tidy.Stderr = dir, std.err, std.err
		if err := tidy.Run(); err != nil {
			return fmt.Errorf("%s is written, but go mod tidy failed (%w); run it again there", folder, err)
		}
	}
	g := generator{dir: dir, stdout: io.Discard}
	if err := g.run([]string{"."}); err != nil {
		return fmt.Errorf("%s is written, but its descriptions are not: %w", folder, err)
	}
	spaced := folder
	if strings.Contains(folder, " ") {
		spaced = `"` + folder + `"`
	}
	fmt.Fprintf(std.out, "wrote %s; next:\n\n  cd %s\n  go test ./...\n  go tool mcpkit call 'go run .' find text=tea\n", folder, spaced)
	return nil
}

// findLibrary sets the clone of the library, unless the program has a published version.
func (n *newModule) findLibrary(m *scaffold.Module) error {
	switch {
	case n.library != "":
		dir, err := filepath.Abs(n.library)
		if err != nil {
			return err
		}
		if !isLibrary(dir) {
			return fmt.Errorf("%s is not a clone of mcpkit; its go.mod should say module %s", n.library, modulePath)
		}
		m.Library = dir
	case clone() != "":
		m.Library = clone()
	case semver.IsValid(m.Version) && !strings.Contains(m.Version, "+dirty"):
		return nil
	default:
		return errors.New("this program has no published version and was built from no clone that is still there; write --library FOLDER with a clone of mcpkit")
	}
	m.Version = "v0.0.0"
	return nil
}

// clone returns the folder of the clone that this program was built from, or "".
func clone() string {
	_, file, _, ok := runtime.Caller(0)
	dir := filepath.Dir(filepath.Dir(filepath.Dir(file)))
	if !ok || strings.Contains(dir, "@") || !isLibrary(dir) { // the module cache has folders such as mcpkit-go@v1.0.0
		return ""
	}
	return dir
}

// isLibrary reports whether a folder has the go.mod of the library.
func isLibrary(dir string) bool {
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && modfile.ModulePath(gomod) == modulePath
}

package main

import (
	"embed"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
)

// source holds the doc comments of the services, for a program that runs without its source.
//
//go:embed files.go git.go gotool.go
var source embed.FS

// docs:begin server

// newServer returns a server with three services. Each has a prefix: files_read, git_log, go_test.
func newServer(root string, logger *slog.Logger) (*mcpkit.Server, error) {
	root, err := directory(root)
	if err != nil {
		return nil, err
	}
	srv, err := mcpkit.New(nil,
		mcpkit.Name("workstation", "1.0.0"),
		mcpkit.Instructions("The files, the git history and the go tool of the directory "+root+". All paths are relative to it."),
		mcpkit.Docs(source, "main"),
		mcpkit.Logger(logger),
		mcpkit.ToolTimeout(30*time.Second), // go_test has a longer one in its tag
		mcpkit.With(&Files{dir: root}, mcpkit.Prefix("files")),
		mcpkit.With(&Git{dir: root}, mcpkit.Prefix("git")),
		mcpkit.With(&Go{dir: root}, mcpkit.Prefix("go")),
	)
	if err != nil {
		return nil, err
	}
	srv.Use(middleware.Logging(logger), middleware.RateLimit(10, 20))
	return srv, nil
}

// docs:end server

// directory returns the directory name without symbolic links, as an absolute path.
func directory(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%q is not a directory", path)
	}
	return path, nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/hosts"
	"github.com/mcpkit/mcpkit-go/internal/nearest"
)

// placement holds the flags of the command install.
type placement struct {
	name    string
	file    string // "" for the usual one
	project bool
	dryRun  bool
	force   bool
	remove  bool
	noCheck bool
}

// hostNames returns the names of all hosts.
func hostNames() []string {
	var names []string
	for _, h := range hosts.All {
		names = append(names, h.Name)
	}
	return names
}

// locate returns the host and its file.
func (p *placement) locate(name string) (*hosts.Host, string, error) {
	h := hosts.Find(name)
	if h == nil {
		return nil, "", fmt.Errorf("%q is not a known host%s; write one of %s", name, nearest.Hint(name, hostNames()), strings.Join(hostNames(), ", "))
	}
	if p.file != "" {
		return h, p.file, nil
	}
	file, err := h.File(p.project)
	return h, file, err
}

func installCommand(std streams) *cobra.Command {
	var p placement
	cmd := remoteCommand(std, &cobra.Command{
		Use:   "install HOST SERVER",
		Short: "Add a server to the configuration of a chat client",
		Long: `Adds a server to the configuration file of a HOST, a program with a chat:
` + strings.Join(hostNames(), ", ") + `.

Comments, order and other entries stay. The file is copied to a backup before
it changes. An entry with the same name is not replaced without --force. Paths
of programs become absolute, because hosts start them in a folder of their
own. Before it writes, the program starts or calls the server and asks for its
name; --no-check leaves that out.`,
	}, func(ctx context.Context, r *remote) error { return runInstall(ctx, r, &p) }, func(r *remote, cmd *cobra.Command) {
		r.before = 1
		cmd.GroupID = groupSetup
		cmd.Flags().BoolVar(&p.remove, "remove", false, "remove the server whose name follows HOST, also if another program added it")
		cmd.Flags().BoolVar(&p.project, "project", false, "use the file of the project in the current folder, not that of the user")
		cmd.Flags().StringVar(&p.file, "file", "", "use this configuration `file`, not the usual one")
		cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "print the change, and write nothing")
		cmd.Flags().StringVar(&p.name, "name", "", "the `name` of the server in the file; default: the name that the server reports")
		cmd.Flags().BoolVar(&p.force, "force", false, "replace another entry with the same name")
		cmd.Flags().BoolVar(&p.noCheck, "no-check", false, "do not start or call the server before")
	})
	cmd.GroupID = groupSetup
	install := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if p.remove {
			return runRemove(cmd, std, &p, args)
		}
		return install(cmd, args)
	}
	return cmd
}

// unfit matches what is not allowed in names of servers: hosts make names of tools of them.
var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// runInstall is the command install.
func runInstall(ctx context.Context, r *remote, p *placement) error {
	h, file, err := p.locate(r.words[0])
	if err != nil {
		return r.usage("%v", err)
	}
	s := hosts.Server{Name: p.name, URL: r.target, Headers: r.headerLines, Env: r.env}
	if scheme, _, _ := strings.Cut(r.target, ":"); r.command == nil && !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return r.usage("hosts connect to http and https URLs, and start programs; they cannot use %q", r.target)
	}
	if r.command != nil {
		s.URL = ""
		if s.Command, err = absolute(r.command.Args); err != nil {
			return r.usage("%v", err)
		}
		r.command.Args = s.Command
	}
	if !p.noCheck {
		if err := r.with(ctx, func(c *client.Client) error {
			if s.Name == "" {
				s.Name = c.Server().Name
			}
			return c.Ping(ctx)
		}); err != nil {
			r.say("nothing was written; --no-check installs a server that does not respond")
			return err
		}
	}
	s.Name = strings.Trim(unfit.ReplaceAllString(s.Name, "-"), "-")
	if s.Name == "" {
		return r.usage("the server reports no name; write --name NAME")
	}
	err = editFile(file, p.dryRun, r.out, func(src []byte) ([]byte, error) { return h.Add(file, src, s, p.force) })
	switch {
	case errors.Is(err, errUnchanged):
		r.out.printf("%s has %s already, in %s\n", h.Title, s.Name, file)
		return nil
	case err != nil:
		r.say("%v", err)
		return exit(exitFault)
	case p.dryRun:
		return nil
	}
	r.out.printf("installed %s in %s; %s\n", s.Name, file, h.Reload())
	if len(s.Env)+len(s.Headers) > 0 {
		r.say("the values of --env and --header are in the file as plain text")
	}
	if r.inherit {
		r.say("--inherit-env is not in the file; write --env NAME for each variable that the server needs")
	}
	return nil
}

// absolute makes a command line independent of the working directory and of PATH, which hosts set
// otherwise.
func absolute(args []string) ([]string, error) {
	program, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, fmt.Errorf("%w; write the path of the server's program", err)
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	out := append([]string{program}, args[1:]...)
	if strings.TrimSuffix(filepath.Base(program), ".exe") == "go" && len(args) > 1 {
		return inFolder(out, here), nil
	}
	for i, arg := range out[1:] {
		if arg == "." || arg == ".." || strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") {
			out[i+1] = filepath.Join(here, arg)
		}
	}
	return out, nil
}

// inFolder returns a command line of go with the flag -C. Go finds packages and tools in that folder,
// and starts the server there.
func inFolder(words []string, here string) []string {
	at := 1
	if !strings.HasPrefix(words[1], "-") { // the flag may follow a word such as run
		at = 2
	}
	if at+1 >= len(words) || words[at] != "-C" {
		return slices.Insert(words, at, "-C", here)
	}
	if folder := words[at+1]; !filepath.IsAbs(folder) {
		words[at+1] = filepath.Join(here, folder)
	}
	return words
}

// errUnchanged says that a file is as it should be already.
var errUnchanged = errors.New("unchanged")

// editFile replaces the content of a file by what edit returns, and keeps a backup. With dryRun it
// only prints the change. The error is errUnchanged if edit returns nil.
func editFile(file string, dryRun bool, out *screen, edit func(src []byte) ([]byte, error)) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	} else if _, there := os.Lstat(file); there == nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is a link to a file that does not exist", file)
	}
	src, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	isNew := err != nil
	changed, err := edit(src)
	switch {
	case err != nil:
		return err
	case changed == nil:
		return errUnchanged
	case dryRun:
		printChange(out, file, src, changed)
		return nil
	}
	mode := fs.FileMode(0o600) // there may be secrets in it
	if !isNew {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
		backup, err := backUp(file, src, mode)
		if err != nil {
			return fmt.Errorf("no backup, so nothing was changed: %w", err)
		}
		out.printf("the backup is %s\n", backup)
	} else if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return replaceFile(file, src, changed, mode)
}

// backUp copies a file that has the content, and returns the name of the copy.
func backUp(file string, content []byte, mode fs.FileMode) (string, error) {
	stamp := file + "." + time.Now().Format("20060102-150405")
	backup, err := createNew(100, mode, content, func(n int) string {
		if n == 1 {
			return stamp + ".bak"
		}
		return fmt.Sprintf("%s-%d.bak", stamp, n)
	})
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("there are 100 backups %s", stamp)
	}
	return backup, err
}

// createNew writes a new file with the first of count names that no file has. name returns them,
// from 1 on. The error wraps fs.ErrExist if there are files with all of them.
func createNew(count int, mode fs.FileMode, data []byte, name func(n int) string) (file string, err error) {
	for n := 1; n <= count; n++ {
		file = name(n)
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(data)
		return file, errors.Join(err, f.Close())
	}
	return "", fs.ErrExist
}

// replaceFile replaces a file with the content was, at once.
func replaceFile(file string, was, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is there after the rename
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	if now, err := os.ReadFile(file); err == nil && !bytes.Equal(now, was) || err != nil && len(was) > 0 {
		return fmt.Errorf("%s has changed meanwhile; try again", file)
	}
	return os.Rename(f.Name(), file)
}

// printChange prints the lines that differ, with - before old ones and + before new ones.
func printChange(out *screen, file string, src, changed []byte) {
	lines := func(b []byte) []string {
		return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	}
	old, now := lines(src), lines(changed)
	if len(src) == 0 {
		old = nil
	}
	same := 0
	for same < min(len(old), len(now)) && old[same] == now[same] {
		same++
	}
	tail := 0
	for tail < min(len(old), len(now))-same && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	out.printf("%s would change at line %d:\n", file, same+1)
	for _, line := range old[same : len(old)-tail] {
		out.printf("%s\n", out.paint(red, "- "+clean(line)))
	}
	for _, line := range now[same : len(now)-tail] {
		out.printf("%s\n", out.paint(green, "+ "+clean(line)))
	}
}

// runRemove is the command install with --remove.
func runRemove(cmd *cobra.Command, std streams, p *placement, args []string) error {
	h, file, err := p.locate(args[0])
	if err != nil {
		return err
	}
	out := newScreen(std.out)
	err = editFile(file, p.dryRun, out, func(src []byte) ([]byte, error) { return h.Remove(file, src, args[1]) })
	if err == nil && !p.dryRun {
		out.printf("removed %s from %s; %s\n", args[1], file, h.Reload())
	}
	return failed(cmd, err)
}

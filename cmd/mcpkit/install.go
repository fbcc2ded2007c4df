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
	"github.com/mcpkit/mcpkit-go/internal/naming"
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

// locate returns the host.
func (p *placement) locate(name string) (*hosts.Host, error) {
	h := hosts.Find(name)
	if h == nil {
		return nil, fmt.Errorf("%q is not a known host%s; write one of %s", name, naming.Hint(name, hostNames()), strings.Join(hostNames(), ", "))
	}
	return h, nil
}

// byCommand reports whether the host's own command makes the change.
func (p *placement) byCommand(h *hosts.Host) bool { return p.file == "" && h.HasCommand(p.project) }

// path returns the host's file.
func (p *placement) path(h *hosts.Host) (string, error) {
	if p.file != "" {
		return p.file, nil
	}
	return h.File(p.project)
}

func installCommand(std streams) *cobra.Command {
	var p placement
	cmd := remoteCommand(std, &cobra.Command{
		Use:   "install HOST SERVER",
		Short: "Add a server to the configuration of a chat client",
		Long: `Adds a server to a HOST, a program with a chat:
` + strings.Join(hostNames(), ", ") + `.

Hosts with a command for it, such as "claude mcp add", are set up by that
command. For others the server becomes an entry of their configuration file:
comments, order and other entries stay, and the file is copied to a backup
before it changes. A server with the same name is not replaced without --force.
Paths of programs become absolute, because hosts start them in a folder of
their own. Before that, the program starts or calls the server and asks for its
name; --no-check leaves that out.`,
	}, func(ctx context.Context, r *remote) error { return runInstall(ctx, r, &p) }, func(r *remote, cmd *cobra.Command) {
		r.before = 1
		cmd.GroupID = groupSetup
		cmd.Flags().BoolVar(&p.remove, "remove", false, "remove the server whose name follows HOST, also if another program added it")
		cmd.Flags().BoolVar(&p.project, "project", false, "install it for the project in the current folder, not for the user")
		cmd.Flags().StringVar(&p.file, "file", "", "use this configuration `file`, not the usual one")
		cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "print the command or the change, and do nothing")
		cmd.Flags().StringVar(&p.name, "name", "", "the `name` of the server there; default: the name that the server reports")
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
	h, err := p.locate(r.words[0])
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
	install := r.installInFile
	if p.byCommand(h) {
		install = r.installByCommand
	}
	where, err := install(ctx, h, p, s)
	code, reported := errors.AsType[exit](err)
	switch {
	case reported:
		return code
	case errors.Is(err, errUnchanged):
		r.out.printf("%s has %s already, in %s\n", h.Title, s.Name, where)
		return nil
	case err != nil:
		r.say("%v", err)
		return exit(exitFault)
	case p.dryRun:
		return nil
	}
	r.out.printf("installed %s in %s; %s\n", s.Name, where, h.Reload)
	if len(s.Env)+len(s.Headers) > 0 {
		r.say("the host keeps the values of --env and --header as plain text")
	}
	if r.inherit {
		r.say("--inherit-env has no effect on the host; write --env NAME for each variable that the server needs")
	}
	return nil
}

// installInFile adds the server to the file of the host, and returns its name.
func (r *remote) installInFile(_ context.Context, h *hosts.Host, p *placement, s hosts.Server) (string, error) {
	file, err := p.path(h)
	if err != nil {
		return "", r.usage("%v", err)
	}
	if folder := filepath.Dir(file); p.file == "" && !p.project {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			r.say("warning: there is no folder %s yet; is %s installed?", folder, h.Title)
		}
	}
	return file, editFile(file, p.dryRun, r.out, func(src []byte) ([]byte, error) { return h.Add(file, src, s, p.force) })
}

// installByCommand adds the server with the host's own command, and returns the name of the host.
func (r *remote) installByCommand(ctx context.Context, h *hosts.Host, p *placement, s hosts.Server) (string, error) {
	command, err := h.AddCommand(s, p.project)
	if err != nil {
		return "", r.usage("%v", err)
	}
	quiet := func(words []string) error { return exec.CommandContext(ctx, words[0], words[1:]...).Run() }
	if !p.force && !p.dryRun && h.HasServer(s.Name, p.project, quiet) {
		return "", &hosts.ExistsError{Where: h.Title, Name: s.Name}
	}
	return h.Title, runHost(ctx, r.out, command, p.dryRun)
}

// runHost runs the command of a host. With dryRun it only prints it.
func runHost(ctx context.Context, out *screen, command []string, dryRun bool) error {
	if dryRun {
		out.printf("%s\n", shellLine(command))
		return nil
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return fmt.Errorf("there is no program %s in PATH; where it is, run:\n%s", command[0], shellLine(command))
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command[:min(3, len(command))], " "), err)
	}
	return nil
}

var needsQuotes = regexp.MustCompile(`[^A-Za-z0-9_./:=@%+,-]`)

// shellLine returns a command for a shell. It does not show values of environment variables, which
// may be secrets.
func shellLine(command []string) string {
	var words []string
	for _, word := range command {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case value != "" && os.Getenv(name) == value:
			word = name + `="$` + name + `"`
		case word == "" || needsQuotes.MatchString(word):
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
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
	if isGo(program) && len(args) > 1 {
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
		backup, err := backUp(file, src)
		if err != nil {
			return fmt.Errorf("no backup, so nothing was changed: %w", err)
		}
		out.printf("the backup is %s\n", backup)
	} else if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return replaceFile(file, src, changed, mode)
}

// backUp writes the content of a file to a new file beside it, and returns the name of that.
func backUp(file string, content []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+"."+time.Now().Format("20060102-150405")+"-*.bak")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	return f.Name(), errors.Join(err, f.Close())
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
	h, err := p.locate(args[0])
	if err != nil {
		return err
	}
	out, name := newScreen(std.out), args[1]
	if p.byCommand(h) {
		command, err := h.RemoveCommand(name, p.project)
		if err == nil {
			err = runHost(cmd.Context(), out, command, p.dryRun)
		}
		return failed(cmd, err)
	}
	file, err := p.path(h)
	if err != nil {
		return err
	}
	err = editFile(file, p.dryRun, out, func(src []byte) ([]byte, error) { return h.Remove(file, src, name) })
	if err == nil && !p.dryRun {
		out.printf("removed %s from %s; %s\n", name, file, h.Reload)
	}
	return failed(cmd, err)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpkit/mcpkit-go/internal/naming"
)

// An exit is the error of a command that has reported what went wrong.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, std streams) int {
	root := newRoot(std)
	root.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	cmd, err := root.ExecuteContextC(ctx)
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	if err != nil {
		errs := newScreen(std.err)
		errs.printf("%s: %s\n", cmd.CommandPath(), clean(err.Error()))
		errs.printf("usage: %s (--help says more)\n", cmd.UseLine())
		return exitUsage
	}
	return exitOK
}

// newRoot returns the program as a command.
func newRoot(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "mcpkit",
		Short:         "Write, check and call MCP servers",
		Version:       moduleVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: groupSource, Title: "Write a server:"},
		&cobra.Group{ID: groupServer, Title: "Call a server:"},
		&cobra.Group{ID: groupSetup, Title: "Set up:"},
	)
	root.SetCompletionCommandGroupID(groupSetup)
	root.SetHelpCommandGroupID(groupSetup)
	root.AddCommand(commands(std)...)
	return root
}

// flagError never shows the value of an unknown flag, which may be a token.
func flagError(cmd *cobra.Command, err error) error {
	e, ok := errors.AsType[*pflag.NotExistError](err)
	switch {
	case !ok:
		return err
	case e.GetSpecifiedShortnames() != "":
		name, _, _ := strings.Cut(e.GetSpecifiedShortnames(), "=")
		return fmt.Errorf("unknown flag: -%s; names of flags begin with two dashes", name)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	return fmt.Errorf("%w%s", err, naming.Hint(e.GetSpecifiedName(), known))
}

// failed reports the error of a command, and returns the one with its exit code.
func failed(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	newScreen(cmd.ErrOrStderr()).printf("%s: %s\n", cmd.CommandPath(), clean(err.Error()))
	return exit(exitFault)
}

// programArguments returns the PACKAGE among the arguments of a command, and those of the program,
// which follow "--" or the package in a command line of go run.
func programArguments(cmd *cobra.Command, args []string) (pkg string, rest []string, err error) {
	named := args
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		named, rest = slices.Clip(args[:n]), args[n:]
	}
	if words := strings.Fields(strings.Join(named, " ")); len(words) > 2 && words[0] == "go" && words[1] == "run" {
		return words[2], append(words[3:], rest...), nil
	}
	if len(named) > 1 {
		return "", nil, fmt.Errorf("%q is one argument too many; write arguments of the program after --", named[1])
	}
	return append(named, ".")[0], rest, nil
}

// outputFlag adds --output to a command.
func outputFlag(flags *pflag.FlagSet, asJSON *bool) {
	flags.FuncP("output", "o", "`text` or json; default: text", func(s string) error {
		if s != "text" && s != "json" {
			return errors.New("write text or json")
		}
		*asJSON = s == "json"
		return nil
	})
}

// packagesCommand completes a command for packages.
func packagesCommand(std streams, cmd *cobra.Command, run func(ctx context.Context, patterns []string) error) *cobra.Command {
	cmd.GroupID = groupSource
	cmd.RunE = func(cmd *cobra.Command, patterns []string) error {
		if len(patterns) == 0 {
			patterns = []string{"."}
		}
		err := run(cmd.Context(), patterns)
		if _, reported := errors.AsType[exit](err); err != nil && !reported {
			prefix := cmd.CommandPath() + ": "
			fmt.Fprintf(std.err, "%s%s\n", prefix, strings.ReplaceAll(err.Error(), "\n", "\n"+prefix))
			return exit(exitFault)
		}
		return err
	}
	return cmd
}

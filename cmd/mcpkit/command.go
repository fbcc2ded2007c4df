package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpkit/mcpkit-go/internal/nearest"
)

// helpWidth is how many columns the help takes.
const helpWidth = 80

// An exit is the error of a command that has reported what went wrong.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run runs the program and returns its exit code.
func run(ctx context.Context, args []string, std streams) int {
	root := newRoot(std)
	root.SetArgs(longFlags(root, args))
	cmd, err := root.ExecuteContextC(ctx)
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	if err != nil {
		errs := newScreen(std.err)
		errs.printf("%s: %s\n", cmd.CommandPath(), clean(err.Error()))
		errs.printf("%s -h describes the command\n", cmd.CommandPath())
		return exitUsage
	}
	return exitOK
}

// newRoot returns the program as a command.
func newRoot(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "mcpkit COMMAND",
		Short:         "write, check and call MCP servers",
		Version:       moduleVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				var names []string
				for _, c := range cmd.Commands() {
					names = append(names, c.Name())
				}
				fmt.Fprintf(std.err, "mcpkit: unknown command %q%s\n", args[0], nearest.Hint(args[0], names))
			}
			writeHelp(std.err, cmd)
			return exit(exitUsage)
		},
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(std.out, cmd) })
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err) })
	root.SetCompletionCommandGroupID(groupSetup)
	root.AddGroup(
		&cobra.Group{ID: groupSource, Title: "Write a server:"},
		&cobra.Group{ID: groupServer, Title: "Call a server:"},
		&cobra.Group{ID: groupSetup, Title: "Set up:"},
	)
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "describe a command",
		GroupID: groupSetup,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := cmd.Root().Find(args)
			if err != nil || len(args) > 0 && c == cmd.Root() {
				return fmt.Errorf("unknown command %q", args[0])
			}
			return c.Help()
		},
	})
	for _, c := range commands(std) {
		c.DisableFlagsInUseLine = true
		root.AddCommand(c)
	}
	return root
}

// longFlags writes the flags that begin with one dash with two, so that both work. It does not
// change the values of flags, nor what follows "--".
func longFlags(root *cobra.Command, args []string) []string {
	takesValue := map[string]bool{} // the flags of all commands
	for _, c := range append(root.Commands(), root) {
		c.InitDefaultHelpFlag()
		c.InitDefaultVersionFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) { takesValue[f.Name] = f.NoOptDefVal == "" })
	}
	args = slices.Clone(args)
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		if !isFlag || name == "" || name == "h" {
			continue
		}
		if name[0] != '-' {
			args[i] = "-" + args[i]
		}
		name, _, hasValue := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if takesValue[name] && !hasValue {
			i++ // the next argument is the value
		}
	}
	if args == nil {
		args = []string{} // nil would mean those of the process
	}
	return args
}

// flagError words an error of a flag. It never shows the value of an unknown flag, which may be a
// token.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		name := e.GetSpecifiedName()
		if near := nearest.Of(name, known); near != "" {
			return fmt.Errorf("unknown flag -%s; did you mean -%s?", name, near)
		}
		return fmt.Errorf("unknown flag -%s; write -- before arguments that begin with a dash", name)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("the flag -%s needs a value", e.GetFlag().Name)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("invalid value %q for flag -%s: %w", e.GetValue(), e.GetFlag().Name, e.Unwrap())
	}
	return err
}

// writeHelp describes a command.
func writeHelp(w io.Writer, cmd *cobra.Command) {
	fmt.Fprintf(w, "usage: %s\n", usageLine(cmd))
	if cmd.Long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(cmd.Long))
	}
	for _, g := range cmd.Groups() {
		fmt.Fprintf(w, "\n%s\n", g.Title)
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID {
				fmt.Fprintf(w, "  %-10s %s\n", c.Name(), c.Short)
			}
		}
	}
	if cmd.HasSubCommands() {
		fmt.Fprint(w, "\nmcpkit COMMAND -h describes a command.\n")
		return
	}
	heading := "\nFlags, which may stand anywhere, with one dash or two:\n\n"
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		fmt.Fprint(w, heading)
		heading = ""
		value, text := pflag.UnquoteUsage(f)
		if value != "" {
			value = " " + value
		}
		fmt.Fprintf(w, "  -%s%s\n", f.Name, value)
		writeWrapped(w, "        ", text)
	})
}

// usageLine returns how to write a command.
func usageLine(cmd *cobra.Command) string {
	name, arguments, _ := strings.Cut(cmd.Use, " ")
	switch {
	case !cmd.HasParent():
		return cmd.Use + " [flags] [arguments]"
	case arguments == "":
		return "mcpkit " + name + " [flags]"
	}
	return "mcpkit " + name + " [flags] " + arguments
}

// writeWrapped writes a text in lines of at most helpWidth columns.
func writeWrapped(w io.Writer, indent, text string) {
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > helpWidth && line != indent {
			fmt.Fprintln(w, line)
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}

// exactly requires n arguments. For another number, the command describes itself.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		writeHelp(cmd.ErrOrStderr(), cmd)
		return exit(exitUsage)
	}
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
// which follow "--".
func programArguments(cmd *cobra.Command, args []string) (pkg string, rest []string, err error) {
	named := args
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		named, rest = slices.Clip(args[:n]), args[n:]
	}
	if len(named) > 1 {
		return "", nil, fmt.Errorf("%q is one argument too many; write arguments of the program after --", named[1])
	}
	return append(named, ".")[0], rest, nil
}

// outputFlag adds -output to a command. Without it, a terminal gets text.
func outputFlag(flags *pflag.FlagSet, asJSON *bool) {
	flags.Func("output", "`text` or json; default: text on a terminal, json elsewhere", func(s string) error {
		if s != "text" && s != "json" {
			return errors.New("write text or json")
		}
		*asJSON = s == "json"
		return nil
	})
}

// packagesCommand completes a command for packages, which run gets with the names of services.
func packagesCommand(std streams, cmd *cobra.Command, run func(ctx context.Context, names, patterns []string) error) *cobra.Command {
	cmd.GroupID = groupSource
	types := cmd.Flags().String("type", "", "`names` of more structs that are services, separated by commas; each package is searched for them")
	cmd.RunE = func(cmd *cobra.Command, patterns []string) error {
		if len(patterns) == 0 {
			patterns = []string{"."}
		}
		names := strings.FieldsFunc(*types, func(r rune) bool { return r == ',' })
		err := run(cmd.Context(), names, patterns)
		if _, reported := errors.AsType[exit](err); err != nil && !reported {
			prefix := cmd.CommandPath() + ": "
			fmt.Fprintf(std.err, "%s%s\n", prefix, strings.ReplaceAll(err.Error(), "\n", "\n"+prefix))
			return exit(exitFault)
		}
		return err
	}
	return cmd
}

// Command mcpkit generates and checks the descriptions of annotated services, and calls MCP
// servers.
//
//	mcpkit gen [-check] [-type T,...] [packages]   write the doc comments of services into their packages
//	mcpkit vet [-type T,...] [packages]            report what is wrong with services, and what their tools cost
//	mcpkit inspect SERVER                          show a server's versions, capabilities, inputs and outputs
//	mcpkit list SERVER                             list tools, prompts, resources and templates
//	mcpkit call SERVER TOOL [name=text ...]        call a tool of a server
//	mcpkit read SERVER URI                         read a resource of a server
//	mcpkit prompt SERVER PROMPT [name=text ...]    get the messages of a prompt of a server
//	mcpkit skills SERVER [URI ...]                 compare the skills of a server with what it lists
//	mcpkit logout URL                              revoke and delete the tokens that -login got
//
// Run it as "go tool mcpkit" after "go get -tool github.com/mcpkit/mcpkit-go/cmd/mcpkit", or with
// go run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/mcpkit/mcpkit-go/internal/nearest"
)

// A command is one command of the program.
type command struct {
	name string
	line string // what it does, on one line
	run  func(ctx context.Context, args []string, std streams) int
}

// streams are the standard streams of the program, and the function that opens the browser; nil
// means the system's.
type streams struct {
	in       io.Reader
	out, err io.Writer
	browse   func(ctx context.Context, page string) error
}

// The exit codes of all commands.
const (
	exitOK    = 0
	exitFault = 1 // there are findings, or the tool failed
	exitUsage = 2
)

var commands = []command{
	{"gen", "write the doc comments of services into their packages", runGen},
	{"vet", "report what is wrong with services, and what their tools cost", runVet},
	{"inspect", "show a server's versions, capabilities, inputs and outputs", runInspect},
	{"list", "list tools, prompts, resources and templates", runList},
	{"call", "call a tool of a server", runCall},
	{"read", "read a resource of a server", runRead},
	{"prompt", "get the messages of a prompt of a server", runPrompt},
	{"skills", "compare the skills of a server with what it lists", runSkills},
	{"logout", "revoke and delete the tokens that -login got", runLogout},
}

func main() {
	if calledByGoVet(os.Args[1:]) {
		unitchecker.Main(analyzer)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, std streams) int {
	if len(args) > 0 {
		for _, c := range commands {
			if c.name == args[0] {
				return c.run(ctx, args[1:], std)
			}
		}
		if args[0] != "help" && !strings.HasPrefix(args[0], "-") {
			fmt.Fprintf(std.err, "mcpkit: unknown command %q%s\n", args[0], nearest.Hint(args[0], names()))
		}
	}
	fmt.Fprint(std.err, "usage: mcpkit COMMAND [flags] [arguments]\n\nThe commands are:\n\n")
	for _, c := range commands {
		fmt.Fprintf(std.err, "  %-8s %s\n", c.name, c.line)
	}
	fmt.Fprint(std.err, "\nmcpkit COMMAND -h describes one command.\n")
	return exitUsage
}

func names() []string {
	var all []string
	for _, c := range commands {
		all = append(all, c.name)
	}
	return all
}

// onPackages parses the flags of a command for packages, and runs it.
func onPackages(flags *flag.FlagSet, usage string, args []string, std streams, run func(names, patterns []string) error) int {
	types := flags.String("type", "", "`names` of more structs that are services, separated by commas; each package is searched for them")
	if code, ok := parse(flags, usage, args, std.err); !ok {
		return code
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	names := strings.FieldsFunc(*types, func(r rune) bool { return r == ',' })
	if err := run(names, patterns); err != nil {
		prefix := "mcpkit " + flags.Name() + ": "
		fmt.Fprintf(std.err, "%s%s\n", prefix, strings.ReplaceAll(err.Error(), "\n", "\n"+prefix))
		return exitFault
	}
	return exitOK
}

// parse parses the flags of a command. If ok is false, the command ends with the code.
func parse(flags *flag.FlagSet, usage string, args []string, stderr io.Writer) (code int, ok bool) {
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: mcpkit %s\n\n", usage)
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK, false
	case err != nil:
		return exitUsage, false
	}
	return exitOK, true
}

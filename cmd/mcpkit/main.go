// Command mcpkit writes, checks, calls and installs MCP servers.
//
//	mcpkit new FOLDER                              write a new module with a server
//	mcpkit dev [PACKAGE|URL] [-- ARGUMENT ...]     run a server, and restart it after each change
//	mcpkit gen [packages]                          write the doc comments of services into their packages
//	mcpkit vet [packages]                          report what is wrong with services, and what their tools cost
//	mcpkit inspect SERVER                          show a server's versions, capabilities, inputs and outputs
//	mcpkit list SERVER                             list tools, prompts, resources and templates
//	mcpkit call SERVER TOOL [name=text ...]        call a tool of a server
//	mcpkit read SERVER URI                         read a resource of a server
//	mcpkit prompt SERVER PROMPT [name=text ...]    get the messages of a prompt of a server
//	mcpkit tasks SERVER ID [wait|answer|cancel]    show a task that a call has become, or act on it
//	mcpkit events SERVER [NAME]                    list the events of a server, or show one as it happens
//	mcpkit install HOST SERVER                     add a server to the configuration of a chat client
//
// "mcpkit help" lists all commands. Run it as "go tool mcpkit" after
// "go get -tool github.com/mcpkit/mcpkit-go/cmd/mcpkit", or with go run.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

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

// The groups of commands in the help.
const (
	groupSource = "source"
	groupServer = "server"
	groupSetup  = "setup"
)

// commands returns all commands.
func commands(std streams) []*cobra.Command {
	return []*cobra.Command{
		newCommand(std),
		devCommand(std),
		genCommand(std),
		vetCommand(std),
		inspectCommand(std),
		listCommand(std),
		callCommand(std),
		readCommand(std),
		promptCommand(std),
		tasksCommand(std),
		eventsCommand(std),
		installCommand(std),
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}

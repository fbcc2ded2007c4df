package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/dev"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/playground"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// defaultDevAddress is where dev serves over HTTP unless a flag says so. If the port is taken, dev
// takes a free one.
const defaultDevAddress = "127.0.0.1:7007"

// development holds the flags of the command dev.
type development struct {
	http    string
	onStdio bool
	folder  string
	watch   []string
	noOpen  bool
	login   login
	std     streams
	err     *screen
	took    time.Duration // by the last build; used by report
}

func devCommand(std streams) *cobra.Command {
	d := &development{std: std, err: newScreen(std.err)}
	cmd := &cobra.Command{
		Use:   "dev [PACKAGE|URL] [-- ARGUMENT ...]",
		Short: "Run a server, and build and restart it after each change",
		Long: `Builds and runs the program of a PACKAGE (default: the one in the current
folder), and does so again when a file of it changes. Clients stay connected,
and are notified of lists that change. Calls wait while the program is built,
and calls in flight finish on the previous program. While it does not build or
does not start, calls return the errors of the compiler, or what the program
said, as tool errors.

On a terminal, dev serves over HTTP, on ` + defaultDevAddress + ` or a free port, and
opens the playground, a page on which you try the server. Without
a terminal it serves on standard input and output, so that a chat client can
start it; from another folder, it takes the path of the package:

  mcpkit install claude-code 'mcpkit dev ./cmd/shop'

The program itself serves on its standard input and output, and has the
environment of dev. Flags of go build go into the variable GOFLAGS.

With the URL of a server that runs already, dev builds nothing.`,
		GroupID: groupSource,
		RunE: func(cmd *cobra.Command, args []string) error {
			pkg, arguments, err := programArguments(cmd, args)
			if err != nil {
				return err
			}
			return failed(cmd, d.run(cmd.Context(), pkg, arguments))
		},
	}
	cmd.Flags().StringVar(&d.http, "http", "", "serve over HTTP on this loopback `address`, such as 127.0.0.1:8080; the path is /mcp")
	cmd.Flags().BoolVar(&d.onStdio, "stdio", false, "serve on standard input and output, also on a terminal or with --http")
	cmd.Flags().StringVarP(&d.folder, "dir", "C", "", "run in this `folder`; default: the current one, or that of the module if the package is elsewhere")
	cmd.Flags().StringArrayVar(&d.watch, "watch", nil, "a `path` of a file or folder that the program reads, whose changes restart it; may be repeated")
	cmd.Flags().BoolVar(&d.login.wanted, "login", false, "log in to the server at a URL with the browser, and store the tokens")
	cmd.Flags().BoolVar(&d.noOpen, "no-open", false, "do not open the playground in the browser; its URL is printed in any case")
	return cmd
}

// say writes a message of dev itself.
func (d *development) say(format string, args ...any) {
	d.err.printf("mcpkit dev: %s\n", fmt.Sprintf(format, args...))
}

// run serves until the client disconnects or ctx ends.
func (d *development) run(ctx context.Context, named string, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	opts := dev.Options{URL: named, Args: args, Watch: d.watch, Stderr: d.err, Report: d.report}
	if d.login.wanted {
		t, err := d.login.transport(named, d.login.opener(d.err, d.std.browse))
		if err != nil {
			return err
		}
		defer t.Close()
		if _, err := t.Token(ctx); err != nil { // outside of a request: the user may take longer than its timeout
			return err
		}
		opts.Dial = append(opts.Dial, client.HTTPClient(&http.Client{Transport: t}))
	}
	what := named
	if !overHTTP(named) {
		dir, pkg, err := findProgram(d.folder, named)
		if err != nil {
			return err
		}
		opts.URL, opts.Dir, opts.Package = "", dir, pkg
		what = pkg + " in " + dir
	}
	s, err := dev.New(opts)
	if err != nil {
		return err
	}
	var transports []transport.Transport
	if d.http != "" || !d.onStdio && isTerminal(d.std.in) {
		listener, err := d.listen(ctx)
		if err != nil {
			return err
		}
		base := "http://" + listener.Addr().String()
		url := base + devPath
		page := playground.NewHandler(s.MCP(), &playground.Options{Target: url, Proxy: true})
		s.Trace = page.Report
		defer page.Close()
		transports = append(transports, &devHTTP{listener, page})
		d.say("%s; clients connect to %s", what, d.err.paint(bold, url))
		d.openPlayground(ctx, page.URL(base+playgroundPath))
	}
	if d.onStdio || transports == nil {
		d.say("%s is served on standard input and output; --http ADDRESS serves it over HTTP", what)
		transports = append(transports, d.stdio())
	}
	err = serveAll(ctx, s, transports)
	if wantsLogin(err) && !d.login.wanted {
		err = fmt.Errorf("%w; write --login to log in with the browser", err)
	}
	return err
}

// The paths of dev over HTTP.
const (
	devPath        = "/mcp"
	playgroundPath = "/playground/"
)

// openPlayground prints the address of the playground, and opens it for a person at a terminal.
func (d *development) openPlayground(ctx context.Context, url string) {
	d.say("try it at %s", url)
	if d.noOpen || !isTerminal(d.std.in) {
		return
	}
	if err := oauthclient.OpenBrowser(ctx, url); err != nil {
		d.say("the browser was not opened: %v", err)
	}
}

// serveAll runs the program and serves over all transports until one of them ends.
func serveAll(ctx context.Context, s *dev.Server, transports []transport.Transport) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	// Ends when all transports have ended, so that calls in flight can finish.
	ended := make(chan error, 1)
	go func() {
		err := s.Run(running)
		ended <- err
		if err != nil {
			cancel()
		}
	}()
	err := transport.ServeAll(ctx, s, transports...)
	end()
	return errors.Join(err, <-ended)
}

// stdio returns the transport on the standard streams.
func (d *development) stdio() transport.Transport {
	if d.std.in == os.Stdin && d.std.out == os.Stdout {
		return stdio.New(nil)
	}
	return stdio.NewIO(d.std.in, d.std.out, nil)
}

// listen opens the address for HTTP.
func (d *development) listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	if d.http == "" {
		l, err := config.Listen(ctx, "tcp", defaultDevAddress)
		if err != nil {
			return config.Listen(ctx, "tcp", "127.0.0.1:0")
		}
		return l, nil
	}
	host, _, err := net.SplitHostPort(d.http)
	if err != nil {
		return nil, fmt.Errorf("--http %q is not an address; write for example 127.0.0.1:8080", d.http)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("--http %q is not a loopback address, and dev lets everybody in who reaches it; write for example 127.0.0.1:8080", d.http)
	}
	return config.Listen(ctx, "tcp", d.http)
}

// devHTTP is the transport for HTTP.
type devHTTP struct {
	listener net.Listener
	page     *playground.Handler
}

// Serve implements [transport.Transport].
func (t *devHTTP) Serve(ctx context.Context, h transport.Handler) error {
	endpoint := streamable.NewHandler(h, nil)
	mux := http.NewServeMux()
	mux.Handle(devPath, endpoint)
	mux.Handle(playgroundPath, t.page)
	defer endpoint.Close()
	return httpserve.Run(ctx, t.listener, &http.Server{Handler: mux}, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		_ = endpoint.Shutdown(ending)
		t.page.Close()
	})
}

// findProgram returns where to run the go command, and the package for it. named is a folder, which
// may be outside of the current module, or an import path.
func findProgram(folder, named string) (dir, pkg string, err error) {
	if dir, err = filepath.Abs(folder); err != nil {
		return "", "", err
	}
	path := named
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
	case filepath.IsAbs(named) || strings.HasPrefix(named, "."):
		return "", "", fmt.Errorf("%s is not a folder; name the folder of a package main", named)
	default:
		return dir, named, nil // an import path
	}
	root := moduleRoot(path)
	if root == "" {
		return "", "", fmt.Errorf("%s is in no module: neither it nor a folder above has a go.mod", named)
	}
	if folder == "" && moduleRoot(dir) != root {
		dir = root
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return "", "", err
	}
	if rel = filepath.ToSlash(rel); rel != "." && rel != ".." && !strings.HasPrefix(rel, "../") {
		rel = "./" + rel
	}
	return dir, rel, nil
}

// moduleRoot returns the folder with the go.mod for a folder, or "".
func moduleRoot(dir string) string {
	for {
		if info, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && !info.IsDir() {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			return ""
		}
		dir = above
	}
}

// shownBytes is how much of a fault the terminal shows.
const shownBytes = 2 << 10

// report shows an event.
func (d *development) report(e dev.Event) {
	switch e.Kind {
	case dev.Building:
		if d.err.live {
			d.err.setStatus(d.err.paint(faint, "building …"))
		}
	case dev.Ready:
		d.say("%s built in %s, started in %s", d.err.paint(green, "ready:"), round(d.took), round(e.Took))
	case dev.Built:
		d.took = e.Took
	case dev.NotBuilt, dev.NotReady:
		d.say("%s", d.err.paint(red, clean(dev.Shorten(e.Fault, shownBytes))))
	}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

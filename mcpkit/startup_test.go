package mcpkit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
)

// growing registers, mounts and uses middleware while it starts.
type growing struct {
	srv  *mcpkit.Server
	late *starter
}

func (g *growing) Start(context.Context) error {
	if err := g.srv.Register(g.late, mcpkit.Prefix("late")); err != nil {
		return err
	}
	mounted, err := mcpkit.New(&starter{})
	if err != nil {
		return err
	}
	g.srv.Use(func(next mcpkit.Handler) mcpkit.Handler { return next })
	return g.srv.Mount("mounted", mounted)
}

func (g *growing) Own() string { return "own" }

func TestServicesMayRegisterAndMountWhileTheyStart(t *testing.T) {
	g := &growing{late: &starter{}}
	g.srv = newServer(t, g)
	within(t, func() {
		require.Equal(t, []string{"late_ping", "mounted_ping", "own"}, names(t, modern(t, g.srv), "tools/list", "tools", "name"))
		require.Contains(t, modern(t, g.srv).result("tools/call", `{"name":"mounted_ping"}`), "pong")
		require.Equal(t, 1, g.late.started, "what is registered by a Start is started, too")
		require.Error(t, g.srv.Close(), "starter says that it is stuck")
		require.Equal(t, 1, g.late.closed)
	})
}

type starts func(context.Context)

func (f starts) Start(ctx context.Context) error { f(ctx); return nil }

func TestServicesStartWithNothingOfTheCallThatStartsThem(t *testing.T) {
	var of context.Context
	p := modern(t, newServer(t, &starter{}, mcpkit.Lifecycle(starts(func(ctx context.Context) { of = ctx }))))
	p.rpc(oauth.NewContext(transport.WithAddress(t.Context(), "192.0.2.1"), &oauth.Principal{Subject: "ann"}), p.request("tools/list", "{}"))
	require.Nil(t, oauth.FromContext(of))
	require.Empty(t, transport.Address(of))
}

// within fails the test if f hangs.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	// Ends with f.
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("it hangs")
	}
}

type withReader struct{}

func (withReader) Read(path string) string       { return path }
func (withReader) Len() int                      { return 0 }
func (withReader) String() string                { return "" }
func (withReader) Write(p []byte) (int, error)   { return len(p), nil }
func (withReader) Format(ctx context.Context)    {}
func (withReader) Shutdown(reason string) string { return reason }
func (withReader) Plain() string                 { return "" }

type readsByBlock struct {
	withReader
	_ struct {
		Read     mcpkit.Tool `params:"path"`
		Format   mcpkit.Skip
		Shutdown mcpkit.Tool `params:"reason"`
	}
}

func (readsByBlock) Read(path string) string       { return path }
func (readsByBlock) Format(ctx context.Context)    {}
func (readsByBlock) Shutdown(reason string) string { return reason }

func TestMethodsWithTheNamesOfGoInterfaces(t *testing.T) {
	require.Equal(t, []string{"plain"}, names(t, modern(t, newServer(t, &withReader{})), "tools/list", "tools", "name"))
	require.Equal(t, []string{"read", "shutdown"}, names(t, modern(t, newServer(t, &readsByBlock{})), "tools/list", "tools", "name"))
}

type silent struct{ _ mcpkit.Info }

func (silent) search() {}

type skipsAll struct {
	_ struct{ Search mcpkit.Skip }
}

func (skipsAll) Search() {}

type hiddenTag struct {
	Query string `json:"query"`
	limit int    `json:"limit" validate:"max=10"` // the mistake that is tested
}

func TestMistakesThatWereSilentAreFaults(t *testing.T) {
	_ = silent.search
	for name, test := range map[string]struct {
		service any
		opts    []mcpkit.Option
		want    string
	}{
		"a service without methods": {&silent{}, nil,
			`silent has no method to register: export the methods that are to be tools (Search, not search), tag the embedded field that has them mcpkit:"include", or with OptIn mention them in the annotation block; for a server without services, pass nil`},
		"a service whose methods are all skipped": {&skipsAll{}, nil, `skipsAll has no method to register`},
		"opt-in without a block":                  {&growsNothing{}, []mcpkit.Option{mcpkit.OptIn()}, `growsNothing has no method to register`},
		"a negative result limit":                 {nil, []mcpkit.Option{mcpkit.MaxResultBytes(-1)}, `mcpkit: MaxResultBytes(-1): a result needs at least 1 byte`},
		"a negative list TTL":                     {nil, []mcpkit.Option{mcpkit.ListTTL(-time.Second)}, `mcpkit: ListTTL(-1s): the time is negative; 0 means that lists are not kept`},
		"a negative timeout":                      {nil, []mcpkit.Option{mcpkit.ToolTimeout(-time.Second)}, `mcpkit: ToolTimeout(-1s): the time is negative; 0 means no limit`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mcpkit.New(test.service, test.opts...)
			require.ErrorContains(t, err, test.want)
		})
	}
	srv := newServer(t, nil)
	err := srv.Add(mcpkit.NewTool("find", func(in hiddenTag) string { return fmt.Sprint(in.limit) }))
	require.ErrorContains(t, err, `limit has tags but is not exported, so nothing fills it or checks it; export it, or drop the tags`)
}

type growsNothing struct{}

func (growsNothing) Search() {}

func TestPagesHoldAThousandItemsByDefault(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	for i := range 1001 {
		require.NoError(t, srv.Add(mcpkit.NewTool(fmt.Sprintf("t%04d", i), func() {})))
	}
	require.Len(t, names(t, modern(t, srv), "tools/list", "tools", "name"), 1000)
	require.Contains(t, modern(t, srv).result("tools/list", "{}"), `"nextCursor":`)
}

// asProgram is set if the test binary is to be a server on stdio.
const asProgram = "MCPKIT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if err := mcpkit.Serve(&program{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testkit.VerifyTestMain(m)
}

// program is the service of that server.
type program struct{}

// Wait reports that it has begun, and waits.
func (program) Wait(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 0, "begun")
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(300 * time.Millisecond):
		return "waited", nil
	}
}

func TestAProgramThatIsToldToStopFinishesItsCalls(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), asProgram+"=1")
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"progressToken":1,`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n")
		require.NoError(t, err)
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "begun")
		require.NoError(t, cmd.Process.Signal(sig))
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "waited", sig)
		require.False(t, lines.Scan())
		require.NoError(t, cmd.Wait())
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// asProgram is the argument that makes the test binary run as the server.
const asProgram = "as-program"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asProgram {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		main()
		return
	}
	// Parallel tests mostly wait for tasks.
	flag.Parse()
	_ = flag.Set("test.parallel", "16")
	leaktest.VerifyTestMain(m)
}

// tourist answers the questions of Tour.
type tourist struct{ asked []string }

func (u *tourist) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	u.asked = append(u.asked, p.Message)
	content := `{"confirm":true}`
	switch {
	case p.Message == "Where to?":
		content = `{"choice":"Oslo"}`
	case strings.HasPrefix(p.Message, "When"):
		content = `{"from":"2026-12-01"}`
	}
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(content)}, nil
}

func (u *tourist) Sample(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	u.asked = append(u.asked, "the model")
	return &protocol.CreateMessageResult{Role: protocol.RoleAssistant, Model: "m", Content: protocol.SamplingContents{mcpkit.Text("Cold and kind.")}}, nil
}

// key is the state key that the processes share.
var key = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))

// startHTTP starts the server as a process and returns its URL.
func startHTTP(t *testing.T) string {
	cmd := exec.Command(os.Args[0], asProgram, "-http", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "TRIPS_KEY="+key)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	drained := make(chan struct{})
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		<-drained
		require.NoError(t, cmd.Wait(), "the server ends without an error")
	})
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "serving on "); ok {
			// Ends when the process does.
			go func() {
				defer close(drained)
				for lines.Scan() {
				}
			}()
			return address
		}
	}
	close(drained)
	t.Fatal("the server did not print its address")
	return ""
}

// roundRobin sends each request to the next server, like a load balancer without sessions.
type roundRobin struct {
	hosts []string
	next  atomic.Int64
	http.Transport
}

func (r *roundRobin) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = r.hosts[int(r.next.Add(1))%len(r.hosts)]
	req.Host = req.URL.Host
	return r.Transport.RoundTrip(req)
}

func dial(t *testing.T, target any, u *tourist, opts ...client.DialOption) *client.Client {
	opts = append(opts, client.Handlers(u))
	c, err := client.Dial(t.Context(), target, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

var (
	wantAsked = []string{"Where to?", "When do you want to go to Oslo?", "the model", "Cold and kind. Pay 240 euros?"}
	wantText  = "booked room 1 in Oslo from 2026-12-01"
)

func tour(t *testing.T, c *client.Client) string {
	text, err := client.Call[string](t.Context(), c, "tour", nil)
	require.NoError(t, err)
	return text
}

func TestTourOnEachTransportAndVersion(t *testing.T) {
	for _, version := range []protocol.Version{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
		for _, via := range []string{"stdio", "HTTP"} {
			t.Run(fmt.Sprintf("%s %s", via, version), func(t *testing.T) {
				var target any
				if via == "stdio" {
					target = client.Command(os.Args[0], asProgram)
				} else {
					target = startHTTP(t)
				}
				u := &tourist{}
				c := dial(t, target, u, client.Version(version))
				require.Equal(t, wantText, tour(t, c))
				require.Equal(t, wantAsked, u.asked)
				ledger, err := client.Call[Ledger](t.Context(), c, "ledger", nil)
				require.NoError(t, err)
				require.Equal(t, Ledger{Holds: 1, Paid: []string{"room 1 in Oslo from 2026-12-01"}}, ledger)
			})
		}
	}
}

func TestVersionsWithoutElicitationGetAnError(t *testing.T) {
	for _, version := range []protocol.Version{protocol.V20241105, protocol.V20250326} {
		t.Run(string(version), func(t *testing.T) {
			u := &tourist{}
			c := dial(t, startHTTP(t), u, client.Version(version))
			_, err := client.Call[string](t.Context(), c, "tour", nil)
			require.ErrorContains(t, err, "this client cannot be asked that")
			text, err := client.Call[string](t.Context(), c, "describe", map[string]string{"city": "Oslo"})
			require.NoError(t, err)
			require.Equal(t, "Cold and kind.", text, "sampling works in this version")
		})
	}
}

func TestRoundsOfOneCallReachTwoProcesses(t *testing.T) {
	first, second := startHTTP(t), startHTTP(t)
	a, err := url.Parse(first)
	require.NoError(t, err)
	b, err := url.Parse(second)
	require.NoError(t, err)
	balancer := &roundRobin{hosts: []string{a.Host, b.Host}}
	t.Cleanup(balancer.CloseIdleConnections)
	u := &tourist{}
	c := dial(t, first, u, client.Version(protocol.V20260728), client.HTTPClient(&http.Client{Transport: balancer}))
	require.Equal(t, wantText, tour(t, c))
	require.Equal(t, wantAsked, u.asked)

	holds, paid := 0, 0
	for _, address := range []string{first, second} {
		ledger, err := client.Call[Ledger](t.Context(), dial(t, address, &tourist{}), "ledger", nil)
		require.NoError(t, err)
		holds += ledger.Holds
		paid += len(ledger.Paid)
	}
	require.Equal(t, 1, holds, "the function of Once ran once, in one process")
	require.Equal(t, 1, paid)
}

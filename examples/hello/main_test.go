package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/examples/internal/rawclient"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// asProgram makes the test binary run as the program.
const asProgram = "HELLO_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func serve(t *testing.T, service any, version string) *rawclient.Client {
	srv, err := mcpkit.New(service)
	require.NoError(t, err)
	handler := streamable.NewHandler(srv, nil)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	return rawclient.HTTP(t, version, server.URL)
}

func toolNames(t *testing.T, c *rawclient.Client) []string {
	var list struct{ Tools []struct{ Name string } }
	require.NoError(t, json.Unmarshal(c.Request("tools/list", "{}").Result, &list))
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func TestGreet(t *testing.T) {
	c := serve(t, &Greeter{}, rawclient.Modern)
	require.Equal(t, []string{"greet"}, toolNames(t, c))
	require.Equal(t, "Hello, Ada!", c.CallTool("greet", `{"Name":"Ada"}`).Text())
}

func TestNameIsRequired(t *testing.T) {
	c := serve(t, &Greeter{}, rawclient.Modern)
	for _, args := range []string{`{}`, `{"Name":null}`} {
		r := c.CallTool("greet", args)
		require.True(t, r.IsError, args)
		require.Contains(t, r.Text(), "/Name: ")
	}
}

func TestEveryVersion(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			cmd := exec.Command(self)
			cmd.Env = append(cmd.Environ(), asProgram+"=1")
			c := rawclient.Stdio(t, version, cmd)
			require.Equal(t, []string{"greet"}, toolNames(t, c))
			require.Equal(t, "Hello, Ada!", c.CallTool("greet", `{"Name":"Ada"}`).Text())
			if version >= "2025-03-26" { // the first version with Streamable HTTP
				require.Equal(t, "Hello, Ada!", serve(t, &Greeter{}, version).CallTool("greet", `{"Name":"Ada"}`).Text())
			}
		})
	}
}

// The program has ten lines of code, without blank lines and comments.
func TestTenLines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	lines := slices.DeleteFunc(strings.Split(string(source), "\n"), func(line string) bool {
		line = strings.TrimSpace(line)
		return line == "" || strings.HasPrefix(line, "//")
	})
	require.LessOrEqual(t, len(lines), 10, strings.Join(lines, "\n"))
}

// polite has the methods of Greeter and one more.
type polite struct {
	*Greeter `mcpkit:"include"`
}

// Part says goodbye to somebody.
func (*polite) Part(who struct{ Name string }) string { return "Goodbye, " + who.Name + "!" }

func TestAnotherToolIsAnotherMethod(t *testing.T) {
	c := serve(t, &polite{&Greeter{}}, rawclient.Modern)
	require.Equal(t, []string{"greet", "part"}, toolNames(t, c))
	require.Equal(t, "Hello, Ada!", c.CallTool("greet", `{"Name":"Ada"}`).Text())
	require.Equal(t, "Goodbye, Ada!", c.CallTool("part", `{"Name":"Ada"}`).Text())
}

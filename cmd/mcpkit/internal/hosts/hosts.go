// Package hosts knows how chat clients are told of MCP servers: by a command of their own, or by an
// entry in a JSON file.
package hosts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A Server is a program, or a URL.
type Server struct {
	Name    string
	Command []string // the program and its arguments; nil for a URL
	Env     []string // "KEY=value", of the program
	URL     string
	Headers []string // "Name: value", for the URL
}

// A Host is a program with a chat, which connects to MCP servers.
type Host struct {
	Name   string // "claude-code"
	Title  string // "Claude Code"
	Reload string // what to do after a change

	own  *command // nil if the host has no command
	file *file    // nil if only its own command edits its file
}

// A command adds servers to the host, and removes them.
type command struct {
	add    func(s Server, scope string) []string
	remove func(name, scope string) []string // nil if the host has no command for it
	has    func(name string) []string        // succeeds if the host has the server; nil if the file shows it
	// project reports that the command works for a project, too.
	project bool
	// noHeaders reports that the command takes no headers.
	noHeaders bool
}

// A file has an object of servers at the key root.
type file struct {
	root    string
	user    func() (string, error)
	project string           // below the folder of a project; "" if there is none
	entry   func(Server) any // nil if only the host's own command writes it
	noURL   string           // what to do instead if the host takes no URLs
}

// All are the hosts.
var All = []*Host{
	{
		Name: "claude-desktop", Title: "Claude Desktop", Reload: "restart Claude Desktop",
		file: &file{
			root: "mcpServers", user: inConfig("Claude", "claude_desktop_config.json"), entry: plainEntry,
			noURL: "add the URL in Claude Desktop, under Settings > Connectors",
		},
	},
	{
		Name: "claude-code", Title: "Claude Code", Reload: "start a new session of claude; /mcp shows its servers",
		// Options with lists of values come after the name, which they would take otherwise.
		own: &command{project: true, add: func(s Server, scope string) []string {
			words := []string{"claude", "mcp", "add", "--scope", scope}
			if s.Command == nil {
				return append(append(words, "--transport", "http", s.Name, s.URL), flags("--header", s.Headers)...)
			}
			return slices.Concat(words, []string{s.Name}, flags("--env", s.Env), []string{"--"}, s.Command)
		}, remove: func(name, scope string) []string {
			return []string{"claude", "mcp", "remove", "--scope", scope, name}
		}},
	},
	{
		Name: "vscode", Title: "VS Code", Reload: "run the command MCP: List Servers in VS Code to start it",
		own: &command{add: func(s Server, _ string) []string {
			e := typedEntry(s)
			e.Name = s.Name
			return []string{"code", "--add-mcp", string(encode(e, "", ""))}
		}},
		file: &file{
			root: "servers", user: inConfig("Code", "User", "mcp.json"), project: filepath.Join(".vscode", "mcp.json"),
			entry: func(s Server) any { return typedEntry(s) },
		},
	},
	{
		Name: "cursor", Title: "Cursor", Reload: "Cursor loads it at once; see Settings > MCP",
		file: &file{root: "mcpServers", user: inHome(".cursor", "mcp.json"), project: filepath.Join(".cursor", "mcp.json"), entry: plainEntry},
	},
	{
		Name: "windsurf", Title: "Windsurf", Reload: "refresh the MCP servers in the settings of Windsurf",
		file: &file{root: "mcpServers", user: inHome(".codeium", "windsurf", "mcp_config.json"), entry: func(s Server) any {
			e := newEntry(s)
			e.ServerURL, e.URL = e.URL, ""
			return e
		}},
	},
	{
		Name: "zed", Title: "Zed", Reload: "Zed loads it at once; see the settings of its agent panel",
		file: &file{root: "context_servers", user: zedSettings, project: filepath.Join(".zed", "settings.json"), entry: plainEntry},
	},
	{
		Name: "codex", Title: "Codex", Reload: "start a new session of codex; /mcp shows its servers",
		own: &command{noHeaders: true, add: func(s Server, _ string) []string {
			words := []string{"codex", "mcp", "add", s.Name}
			if s.Command == nil {
				return append(words, "--url", s.URL)
			}
			return slices.Concat(words, flags("--env", s.Env), []string{"--"}, s.Command)
		}, remove: func(name, _ string) []string {
			return []string{"codex", "mcp", "remove", name}
		}, has: func(name string) []string {
			return []string{"codex", "mcp", "get", name}
		}},
	},
	{
		Name: "gemini", Title: "Gemini CLI", Reload: "start gemini again; /mcp shows its servers",
		// An option with a list of values ends at the next option.
		own: &command{project: true, add: func(s Server, scope string) []string {
			words := []string{"gemini", "mcp", "add"}
			if s.Command == nil {
				return append(append(words, flags("--header", s.Headers)...), "--scope", scope, "--transport", "http", s.Name, s.URL)
			}
			words = append(append(words, flags("--env", s.Env)...), "--scope", scope, s.Name, s.Command[0], "--")
			return append(words, s.Command[1:]...)
		}, remove: func(name, scope string) []string {
			return []string{"gemini", "mcp", "remove", "--scope", scope, name}
		}},
		file: &file{root: "mcpServers", user: inHome(".gemini", "settings.json"), project: filepath.Join(".gemini", "settings.json")},
	},
	{
		Name: "opencode", Title: "opencode", Reload: "start opencode again",
		file: &file{root: "mcp", user: opencodeConfig, project: "opencode.json", entry: func(s Server) any {
			if s.Command == nil {
				return opencodeEntry{Type: "remote", URL: s.URL, Headers: pairs(s.Headers, ":"), Enabled: true}
			}
			return opencodeEntry{Type: "local", Command: s.Command, Environment: pairs(s.Env, "="), Enabled: true}
		}},
	},
}

// Find returns the host with the name, or nil.
func Find(name string) *Host {
	i := slices.IndexFunc(All, func(h *Host) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return All[i]
}

// flags returns a flag for each value.
func flags(name string, values []string) []string {
	var words []string
	for _, v := range values {
		words = append(words, name, v)
	}
	return words
}

// An entry is that of a server in the files of most hosts.
type entry struct {
	Name      string            `json:"name,omitzero"` // for VS Code's command only
	Type      string            `json:"type,omitzero"`
	Command   string            `json:"command,omitzero"`
	Args      []string          `json:"args,omitzero"` // [] for a program without arguments: some hosts require it
	Env       map[string]string `json:"env,omitzero"`
	URL       string            `json:"url,omitzero"`
	ServerURL string            `json:"serverUrl,omitzero"`
	Headers   map[string]string `json:"headers,omitzero"`
}

func newEntry(s Server) entry {
	if s.Command == nil {
		return entry{URL: s.URL, Headers: pairs(s.Headers, ":")}
	}
	return entry{Command: s.Command[0], Args: append([]string{}, s.Command[1:]...), Env: pairs(s.Env, "=")}
}

func plainEntry(s Server) any { return newEntry(s) }

func typedEntry(s Server) entry {
	e := newEntry(s)
	e.Type = "stdio"
	if s.Command == nil {
		e.Type = "http"
	}
	return e
}

type opencodeEntry struct {
	Type        string            `json:"type"`
	Command     []string          `json:"command,omitzero"`
	Environment map[string]string `json:"environment,omitzero"`
	URL         string            `json:"url,omitzero"`
	Headers     map[string]string `json:"headers,omitzero"`
	Enabled     bool              `json:"enabled"`
}

// pairs splits texts such as "KEY=value".
func pairs(all []string, separator string) map[string]string {
	var members map[string]string
	for _, text := range all {
		if members == nil {
			members = map[string]string{}
		}
		key, value, _ := strings.Cut(text, separator)
		members[strings.TrimSpace(key)] = strings.TrimPrefix(value, " ")
	}
	return members
}

func inHome(parts ...string) func() (string, error) {
	return func() (string, error) {
		home, err := os.UserHomeDir()
		return filepath.Join(append([]string{home}, parts...)...), err
	}
}

// inConfig returns a file in the folder for the configuration of programs: ~/.config,
// ~/Library/Application Support or %AppData%.
func inConfig(parts ...string) func() (string, error) {
	return func() (string, error) {
		dir, err := os.UserConfigDir()
		return filepath.Join(append([]string{dir}, parts...)...), err
	}
}

func zedSettings() (string, error) {
	switch runtime.GOOS {
	case "windows":
		return inConfig("Zed", "settings.json")()
	case "darwin":
		return inHome(".config", "zed", "settings.json")()
	}
	return inXDG("zed", "settings.json")()
}

// inXDG returns a file in $XDG_CONFIG_HOME, or else in ~/.config.
func inXDG(parts ...string) func() (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return func() (string, error) { return filepath.Join(append([]string{dir}, parts...)...), nil }
	}
	return inHome(append([]string{".config"}, parts...)...)
}

func opencodeConfig() (string, error) {
	file, err := inXDG("opencode", "opencode.json")()
	if err != nil {
		return "", err
	}
	withComments := strings.TrimSuffix(file, ".json") + ".jsonc"
	if _, err := os.Stat(withComments); err == nil {
		return withComments, nil
	}
	return file, nil
}

// HasCommand reports whether the host has a command of its own, for the user or for the project in
// the current folder.
func (h *Host) HasCommand(project bool) bool { return h.own != nil && (!project || h.own.project) }

// scope returns what commands call the user and the project.
func scope(project bool) string {
	if project {
		return "project"
	}
	return "user"
}

// AddCommand returns the host's own command that adds the server.
func (h *Host) AddCommand(s Server, project bool) ([]string, error) {
	if h.own.noHeaders && len(s.Headers) > 0 {
		return nil, fmt.Errorf("the command of %s takes no headers; leave out --header", h.Title)
	}
	return h.own.add(s, scope(project)), nil
}

// RemoveCommand returns the host's own command that removes the server.
func (h *Host) RemoveCommand(name string, project bool) ([]string, error) {
	if h.own.remove == nil {
		return nil, fmt.Errorf("%s has no command that removes a server; remove it there", h.Title)
	}
	return h.own.remove(name, scope(project)), nil
}

// HasServer reports whether the host has a server with the name, which its own command would
// replace. It calls run for a command, whose result it does not need.
func (h *Host) HasServer(name string, project bool, run func(command []string) error) bool {
	if h.own.has != nil {
		return run(h.own.has(name)) == nil
	}
	file, err := h.File(project)
	if err != nil {
		return false
	}
	src, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	d, err := parse(src)
	return err == nil && member(object(d.Value, h.file.root), name) != nil
}

// File returns the configuration file: that of the project in the current folder, or of the user.
func (h *Host) File(project bool) (string, error) {
	switch {
	case h.file == nil:
		return "", fmt.Errorf("only the command of %s changes its configuration, for the user; leave out --file and --project", h.Title)
	case !project:
		return h.file.user()
	case h.file.project == "":
		return "", fmt.Errorf("%s has no configuration file for projects; leave out --project", h.Title)
	}
	return filepath.Abs(h.file.project)
}

// An ExistsError says that the host has another server with the name.
type ExistsError struct{ Where, Name string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s has another server named %q; choose another name with --name, or replace it with --force", e.Where, e.Name)
}

// encode returns a value as JSON, in several lines if unit is not "".
func encode(v any, prefix, unit string) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if unit != "" {
		e.SetIndent(prefix, unit)
	}
	_ = e.Encode(v) // texts always encode
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

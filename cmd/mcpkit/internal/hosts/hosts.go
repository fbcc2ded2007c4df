// Package hosts adds MCP servers to the configuration files of chat clients, and removes them. It
// changes nothing but the entry of the server: comments, order and unknown keys stay.
package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// A Server is an entry of a configuration file: a program, or a URL.
type Server struct {
	Name    string
	Command []string // the program and its arguments; nil for a URL
	Env     []string // "KEY=value", of the program
	URL     string
	Headers []string // "Name: value", for the URL
}

// A Host is a program with a chat, which connects to MCP servers.
type Host struct {
	Name  string // "claude-code"
	Title string // "Claude Code"

	format  format
	root    string                 // the key that holds the servers
	user    func() (string, error) // the file of the user
	project string                 // the file of a project, below its folder; "" if there is none
	entry   func(Server) []member
	noURL   string // what to do instead if the host takes no URLs
	reload  string // what to do after a change
}

// A member is a key and its value: a string, a bool, a list of strings or a list of members.
type member struct {
	key   string
	value any
}

// A format edits files of a syntax. What it cannot edit is an error.
type format interface {
	// decode returns the whole file.
	decode(src []byte) (map[string]any, error)
	// set adds an entry to the object at the key root, or replaces the one that exists. The file was
	// decoded before.
	set(src []byte, root, name string, entry []member, exists bool) ([]byte, error)
	// remove removes an entry that there is.
	remove(src []byte, root, name string) ([]byte, error)
}

// All are the hosts, by name.
var All = []*Host{
	{
		Name: "claude-desktop", Title: "Claude Desktop", format: jsonc{}, root: "mcpServers",
		user:   inConfig("Claude", "claude_desktop_config.json"),
		entry:  programs("", "args", "env"),
		noURL:  "add the URL in Claude Desktop, under Settings > Connectors",
		reload: "restart Claude Desktop",
	},
	{
		Name: "claude-code", Title: "Claude Code", format: jsonc{}, root: "mcpServers",
		user: claudeConfig, project: ".mcp.json",
		entry:  either(programs("stdio", "args", "env"), urls("http", "url", "headers")),
		reload: "start a new session of claude; /mcp shows its servers",
	},
	{
		Name: "vscode", Title: "VS Code", format: jsonc{}, root: "servers",
		user: inConfig("Code", "User", "mcp.json"), project: filepath.Join(".vscode", "mcp.json"),
		entry:  either(programs("stdio", "args", "env"), urls("http", "url", "headers")),
		reload: "run the command MCP: List Servers in VS Code to start it",
	},
	{
		Name: "cursor", Title: "Cursor", format: jsonc{}, root: "mcpServers",
		user: inHome(".cursor", "mcp.json"), project: filepath.Join(".cursor", "mcp.json"),
		entry:  either(programs("", "args", "env"), urls("", "url", "headers")),
		reload: "Cursor loads it at once; see Settings > MCP",
	},
	{
		Name: "windsurf", Title: "Windsurf", format: jsonc{}, root: "mcpServers",
		user:   inHome(".codeium", "windsurf", "mcp_config.json"),
		entry:  either(programs("", "args", "env"), urls("", "serverUrl", "headers")),
		reload: "refresh the MCP servers in the settings of Windsurf",
	},
	{
		Name: "zed", Title: "Zed", format: jsonc{}, root: "context_servers",
		user: zedSettings, project: filepath.Join(".zed", "settings.json"),
		entry:  either(programs("", "args", "env"), urls("", "url", "headers")),
		reload: "Zed loads it at once; see the settings of its agent panel",
	},
	{
		Name: "codex", Title: "Codex", format: tomlFile{}, root: "mcp_servers",
		user: codexConfig, project: filepath.Join(".codex", "config.toml"),
		entry:  either(programs("", "args", "env"), urls("", "url", "http_headers")),
		reload: "start a new session of codex; /mcp shows its servers",
	},
	{
		Name: "gemini", Title: "Gemini CLI", format: jsonc{}, root: "mcpServers",
		user: inHome(".gemini", "settings.json"), project: filepath.Join(".gemini", "settings.json"),
		entry:  either(programs("", "args", "env"), urls("", "httpUrl", "headers")),
		reload: "start gemini again; /mcp shows its servers",
	},
	{
		Name: "opencode", Title: "opencode", format: jsonc{}, root: "mcp",
		user: opencodeConfig, project: "opencode.json",
		entry: either(func(s Server) []member {
			return compact([]member{{"type", "local"}, {"command", s.Command}, {"environment", pairs(s.Env, "=")}, {"enabled", true}})
		}, func(s Server) []member {
			return append(urls("remote", "url", "headers")(s), member{"enabled", true})
		}),
		reload: "start opencode again",
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

// programs returns the entry of a program whose command and arguments have keys of their own.
func programs(kind, args, env string) func(Server) []member {
	return func(s Server) []member {
		return compact([]member{{"type", kind}, {"command", s.Command[0]}, {args, s.Command[1:]}, {env, pairs(s.Env, "=")}})
	}
}

// urls returns the entry of a URL.
func urls(kind, url, headers string) func(Server) []member {
	return func(s Server) []member {
		return compact([]member{{"type", kind}, {url, s.URL}, {headers, pairs(s.Headers, ":")}})
	}
}

func either(program, url func(Server) []member) func(Server) []member {
	return func(s Server) []member {
		if s.Command == nil {
			return url(s)
		}
		return program(s)
	}
}

// compact removes members without a value. A program keeps its empty list of arguments, which some
// hosts require.
func compact(all []member) []member {
	return slices.DeleteFunc(all, func(m member) bool {
		switch v := m.value.(type) {
		case string:
			return v == ""
		case []member:
			return len(v) == 0
		}
		return false
	})
}

// pairs splits texts such as "KEY=value".
func pairs(all []string, separator string) []member {
	var members []member
	for _, text := range all {
		key, value, _ := strings.Cut(text, separator)
		members = append(members, member{strings.TrimSpace(key), strings.TrimPrefix(value, " ")})
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

func claudeConfig() (string, error) {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Join(dir, ".claude.json"), nil
	}
	return inHome(".claude.json")()
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

func codexConfig() (string, error) {
	if dir := os.Getenv("CODEX_HOME"); dir != "" {
		return filepath.Join(dir, "config.toml"), nil
	}
	return inHome(".codex", "config.toml")()
}

// File returns the configuration file: that of the project in the current folder, or of the user.
func (h *Host) File(project bool) (string, error) {
	switch {
	case !project:
		return h.user()
	case h.project == "":
		return "", fmt.Errorf("%s has no configuration file for projects; leave out --project", h.Title)
	}
	return filepath.Abs(h.project)
}

// Reload says what the user has to do after a change.
func (h *Host) Reload() string { return h.reload }

// An ExistsError says that the file has another entry with the name.
type ExistsError struct{ File, Name string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s has another server named %q; choose another name with --name, or replace it with --force", e.File, e.Name)
}

// ErrNotInstalled says that the file has no entry with the name.
var ErrNotInstalled = errors.New("not installed")

// Add returns the content of the file with the server. The content is nil if the file has the same
// entry already. Src is the present content, which may be empty.
func (h *Host) Add(file string, src []byte, s Server, force bool) ([]byte, error) {
	if s.Command == nil && h.noURL != "" {
		return nil, fmt.Errorf("%s reads only programs from its file; %s", h.Title, h.noURL)
	}
	entries, err := h.servers(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	entry := h.entry(s)
	old, exists := entries[s.Name]
	if exists {
		if reflect.DeepEqual(old, plain(entry)) {
			return nil, nil
		}
		if !force {
			return nil, &ExistsError{file, s.Name}
		}
	}
	out, err := h.format.set(src, h.root, s.Name, entry, exists)
	return h.checked(file, src, out, err, func(servers map[string]any) { servers[s.Name] = plain(entry) })
}

// Remove returns the content of the file without the server. The error is [ErrNotInstalled] if the
// file does not have it.
func (h *Host) Remove(file string, src []byte, name string) ([]byte, error) {
	entries, err := h.servers(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if _, exists := entries[name]; !exists {
		others := ""
		if len(entries) > 0 {
			others = "; there are " + strings.Join(slices.Sorted(maps.Keys(entries)), ", ")
		}
		return nil, fmt.Errorf("%s: the server %q is %w%s", file, name, ErrNotInstalled, others)
	}
	out, err := h.format.remove(src, h.root, name)
	return h.checked(file, src, out, err, func(servers map[string]any) { delete(servers, name) })
}

// servers returns the members of the object at the key root.
func (h *Host) servers(src []byte) (map[string]any, error) {
	all, err := h.format.decode(src)
	if err != nil {
		return nil, err
	}
	servers, isObject := all[h.root].(map[string]any)
	if all[h.root] != nil && !isObject {
		return nil, fmt.Errorf("the value of %q is not an object or a table", h.root)
	}
	return servers, nil
}

// checked returns out if it differs from src by exactly the change of the servers. An editor of
// texts may be wrong about a file that it does not understand; then the file stays as it is.
func (h *Host) checked(file string, src, out []byte, err error, change func(servers map[string]any)) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	want, err := h.format.decode(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	servers, _ := want[h.root].(map[string]any)
	if servers == nil {
		servers = map[string]any{}
	}
	change(servers)
	want[h.root] = servers
	got, err := h.format.decode(out)
	if err == nil && got[h.root] == nil && len(servers) == 0 {
		got[h.root] = map[string]any{} // the format has no empty tables
	}
	if err != nil || !reflect.DeepEqual(want, got) {
		return nil, fmt.Errorf("%s is written in a way that cannot be edited safely; edit the entry under %q by hand", file, h.root)
	}
	return out, nil
}

// plain converts an entry to what decode returns.
func plain(value any) any {
	switch v := value.(type) {
	case []member:
		object := map[string]any{}
		for _, m := range v {
			object[m.key] = plain(m.value)
		}
		return object
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list
	}
	return value
}

// quote returns a string as JSON. It is also a string of TOML.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings always encode
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

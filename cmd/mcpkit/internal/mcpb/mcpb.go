// Package mcpb writes MCP bundles, which chat clients install, and the description of a server for
// the registry.
package mcpb

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// A Manifest is the manifest.json of a bundle whose server is a program.
type Manifest struct {
	ManifestVersion  string             `json:"manifest_version"`
	Name             string             `json:"name"`
	DisplayName      string             `json:"display_name,omitempty"`
	Version          string             `json:"version"`
	Description      string             `json:"description"`
	Author           Author             `json:"author"`
	Homepage         string             `json:"homepage,omitempty"`
	Server           Program            `json:"server"`
	Tools            []Tool             `json:"tools,omitempty"`
	PromptsGenerated bool               `json:"prompts_generated,omitempty"`
	Compatibility    Compatibility      `json:"compatibility"`
	UserConfig       map[string]Setting `json:"user_config,omitempty"`
}

// ManifestVersion is the version of the format. Bundles need nothing of later versions, and older
// hosts refuse those.
const ManifestVersion = "0.3"

// An Author is who publishes the bundle.
type Author struct {
	Name string `json:"name"`
}

// A Program says how to start the server.
type Program struct {
	Type       string  `json:"type"`
	EntryPoint string  `json:"entry_point"`
	Config     Command `json:"mcp_config"`
}

// A Command is a command line with variables such as ${__dirname}.
type Command struct {
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// A Tool is what hosts show before they install the bundle.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Compatibility says where the bundle runs.
type Compatibility struct {
	Platforms []string `json:"platforms"`
}

// A Setting is a value that the host asks its user for.
type Setting struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Sensitive   bool   `json:"sensitive"`
}

// Platform returns the name of an operating system in a manifest, or "" if it has none.
func Platform(goos string) string {
	return map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}[goos]
}

// A File is a file of a bundle.
type File struct {
	Name       string // with slashes
	Data       []byte
	Executable bool
}

// Pack returns the bytes of a bundle with the manifest and the files. The same input gives the same
// bytes.
func Pack(m *Manifest, files ...File) ([]byte, error) {
	manifest, err := Encode(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range append([]File{{Name: "manifest.json", Data: manifest}}, files...) {
		// The oldest time that the format knows.
		h := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(0o644)
		if f.Executable {
			h.SetMode(0o755)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Encode returns v as JSON for people to read.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// Digest returns the SHA-256 of data in hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A Listing is the server.json of a server, for the registry.
type Listing struct {
	Schema      string      `json:"$schema"`
	Name        string      `json:"name"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description"`
	Version     string      `json:"version"`
	WebsiteURL  string      `json:"websiteUrl,omitempty"`
	Repository  *Repository `json:"repository,omitempty"`
	Packages    []Package   `json:"packages"`
}

// ListingSchema is the schema of server.json.
const ListingSchema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

// A Repository is where the source is.
type Repository struct {
	URL    string `json:"url"`
	Source string `json:"source"`
}

// A Package is a bundle at a URL.
type Package struct {
	RegistryType string     `json:"registryType"`
	Identifier   string     `json:"identifier"`
	FileSHA256   string     `json:"fileSha256"`
	Transport    Transport  `json:"transport"`
	Environment  []Variable `json:"environmentVariables,omitempty"`
}

// A Transport is how clients reach the server.
type Transport struct {
	Type string `json:"type"`
}

// A Variable is an environment variable that the user sets.
type Variable struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	IsRequired  bool   `json:"isRequired"`
	IsSecret    bool   `json:"isSecret"`
}

// MaxDescription is how many characters the description of a Listing may have.
const MaxDescription = 100

// Brief shortens a text to the first paragraph, and to at most size characters.
func Brief(text string, size int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n\n")
	letters := []rune(strings.Join(strings.Fields(text), " "))
	if len(letters) <= size {
		return string(letters)
	}
	cut := string(letters[:size-1])
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:.") + "…"
}

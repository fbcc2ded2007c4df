// Package skillmd has what the server side and the client side of the Skills extension share: the
// entry of a skill, its limits, and how the front matter of SKILL.md becomes JSON.
package skillmd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Names of the extension's protocol.
const (
	ID            = "io.modelcontextprotocol/skills"
	MethodList    = "skills/list"
	MethodGet     = "skills/get"
	MethodReadDir = "resources/directory/read"
	FileName      = "SKILL.md"
	DirectoryMIME = "inode/directory"
	Dynamic       = "dynamic"
)

// Limits of one skill that every host accepts (SEP-2640, "Limits").
const (
	MaxFiles       = 512      // files of one skill, with SKILL.md
	MaxBytes       = 16 << 20 // bytes of all files of one skill
	MaxFrontMatter = 16 << 10 // bytes of the front matter of SKILL.md
)

// A File is one file of a skill in an entry.
type File struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // "sha256:" and 64 lower-case hexadecimal digits
	Size   int64  `json:"size"`   // bytes
}

// Digest returns the digest of a file's contents.
func Digest(contents []byte) string {
	sum := sha256.Sum256(contents)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// An Entry describes one skill. Files is nil for a dynamic skill, whose files have no digests.
type Entry struct {
	URI         string
	FrontMatter json.RawMessage // a JSON object
	Files       []File
}

// MarshalJSON writes the entry.
func (e Entry) MarshalJSON() ([]byte, error) {
	files := json.RawMessage(`"` + Dynamic + `"`)
	if e.Files != nil {
		var err error
		if files, err = jsonx.Marshal(e.Files); err != nil {
			return nil, err
		}
	}
	return jsonx.Marshal(struct {
		URI         string          `json:"uri"`
		FrontMatter json.RawMessage `json:"frontmatter"`
		Resources   json.RawMessage `json:"resources"`
	}{e.URI, e.FrontMatter, files})
}

// UnmarshalJSON reads an entry and checks what the specification demands of it. Unknown members are
// ignored.
func (e *Entry) UnmarshalJSON(text []byte) error {
	var raw struct {
		URI         string          `json:"uri"`
		FrontMatter json.RawMessage `json:"frontmatter"`
		Resources   json.RawMessage `json:"resources"`
	}
	if err := jsonx.Unmarshal(text, &raw); err != nil {
		return err
	}
	*e = Entry{URI: raw.URI, FrontMatter: raw.FrontMatter}
	name, err := NameOf(raw.FrontMatter)
	if err != nil {
		return fmt.Errorf("skill %q: %w", raw.URI, err)
	}
	root, ok := strings.CutSuffix(raw.URI, "/"+FileName)
	if !ok || !strings.HasSuffix(root, "/"+name) {
		return fmt.Errorf("skill %q: the URI does not end in %q", raw.URI, name+"/"+FileName)
	}
	if jsonx.IsString(raw.Resources, Dynamic) {
		return nil
	}
	if jsonx.Kind(raw.Resources) != '[' {
		return fmt.Errorf("skill %q: resources is neither a list nor %q", raw.URI, Dynamic)
	}
	e.Files = []File{}
	if err := jsonx.Unmarshal(raw.Resources, &e.Files); err != nil {
		return fmt.Errorf("skill %q: %w", raw.URI, err)
	}
	for file := range jsonx.Elements(raw.Resources) {
		if jsonx.Member(file, "size") == nil {
			return fmt.Errorf("skill %q: a file has no size", raw.URI)
		}
	}
	return e.checkFiles(root)
}

// PathOf returns the path of the file uri from the directory root of its skill. It is false if the
// file is outside of it on any operating system.
func PathOf(root, uri string) (string, bool) {
	escaped, inside := strings.CutPrefix(uri, root+"/")
	p, err := url.PathUnescape(escaped)
	return p, inside && err == nil && ValidPath(p)
}

// ValidPath reports whether a file of a skill may have the path. Backslashes are slashes on
// Windows.
func ValidPath(p string) bool {
	return fs.ValidPath(p) && p != "." && !strings.Contains(p, `\`)
}

// checkFiles checks the list of files.
func (e *Entry) checkFiles(root string) error {
	seen := map[string]bool{} // paths
	for _, f := range e.Files {
		p, ok := PathOf(root, f.URI)
		switch {
		case !ok:
			return fmt.Errorf("skill %q: the file %q is not in its directory", e.URI, f.URI)
		case seen[p]:
			return fmt.Errorf("skill %q: the file %q is listed twice", e.URI, f.URI)
		case f.Size < 0 || !validDigest(f.Digest):
			return fmt.Errorf("skill %q: the digest or the size of the file %q is not valid", e.URI, f.URI)
		}
		seen[p] = true
	}
	if !seen[FileName] {
		return fmt.Errorf("skill %q: its SKILL.md is not listed", e.URI)
	}
	return nil
}

func validDigest(digest string) bool {
	sum, ok := strings.CutPrefix(digest, "sha256:")
	return ok && len(sum) == 64 && strings.IndexFunc(sum, notHex) < 0
}

// NameOf returns the name in a front matter, and checks the fields that the Agent Skills
// specification demands.
func NameOf(frontMatter json.RawMessage) (string, error) {
	if jsonx.Kind(frontMatter) != '{' {
		return "", errors.New("there is no front matter")
	}
	name := jsonx.Member(frontMatter, "name")
	description := jsonx.Member(frontMatter, "description")
	if jsonx.Kind(name) != '"' || jsonx.Kind(description) != '"' {
		return "", errors.New("the front matter needs a name and a description, both texts")
	}
	return jsonx.String(name), CheckName(jsonx.String(name))
}

// CheckName checks the name of a skill by the rules of the Agent Skills specification.
func CheckName(name string) error {
	if name == "" || len(name) > 64 || strings.IndexFunc(name, notOfName) >= 0 ||
		strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		return fmt.Errorf("the name %q is not valid; a name has 1 to 64 characters a-z, 0-9 and single hyphens between them", name)
	}
	return nil
}

func notOfName(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }

func notHex(r rune) bool { return (r < 'a' || r > 'f') && (r < '0' || r > '9') }

// maxDescription limits the description of a skill (Agent Skills specification).
const maxDescription = 1024

// CheckAuthor checks the rules for authors that clients do not enforce.
func CheckAuthor(frontMatter json.RawMessage) error {
	description := jsonx.String(jsonx.Member(frontMatter, "description"))
	if n := utf8.RuneCountInString(description); strings.TrimSpace(description) == "" || n > maxDescription {
		return fmt.Errorf("the description has %d characters; it needs 1 to %d", n, maxDescription)
	}
	for key := range jsonx.Members(jsonx.Member(frontMatter, "metadata")) {
		if name := jsonx.String(key); strings.HasPrefix(name, "io.modelcontextprotocol/") {
			return fmt.Errorf("the metadata has %q; names that begin with io.modelcontextprotocol/ belong to the protocol", name)
		}
	}
	return nil
}

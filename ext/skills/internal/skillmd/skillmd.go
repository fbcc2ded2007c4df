// Package skillmd has what the server side and the client side of the Skills extension share: the
// entry of a skill, its limits, and the front matter of SKILL.md.
package skillmd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Names of the extension's protocol.
const (
	ID         = "io.modelcontextprotocol/skills"
	MethodList = "skills/list"
	MethodGet  = "skills/get"
	FileName   = "SKILL.md"
)

// Limits of one skill that every host accepts (SEP-2640, "Limits").
const (
	MaxFiles       = 512      // files of one skill, with SKILL.md
	MaxBytes       = 16 << 20 // bytes of all files of one skill
	maxFrontMatter = 16 << 10 // bytes of the front matter of SKILL.md
	maxDescription = 1024     // characters of the description (Agent Skills specification)
)

// An Entry describes one skill.
type Entry struct {
	URI         string          `json:"uri"`
	FrontMatter json.RawMessage `json:"frontmatter"` // an object
	Files       []File          `json:"resources"`
}

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

// Meta is the front matter of a SKILL.md.
type Meta struct {
	Name, Description string
	JSON              json.RawMessage // all of it as an object
}

// Parse returns the front matter of a SKILL.md, which is YAML, and checks it.
func Parse(text []byte) (*Meta, error) {
	source, err := cut(string(text))
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := yaml.Load([]byte(source), &fields); err != nil {
		return nil, fmt.Errorf("the front matter is not valid YAML: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	object, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("the front matter cannot be written as JSON: %w", err)
	}
	return Check(object)
}

var validName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Check checks front matter, as an object, by the rules of the Agent Skills specification.
func Check(object json.RawMessage) (*Meta, error) {
	name, description := jsonx.Member(object, "name"), jsonx.Member(object, "description")
	if jsonx.Kind(name) != '"' || jsonx.Kind(description) != '"' {
		return nil, errors.New("the front matter needs a name and a description, both texts")
	}
	m := &Meta{Name: jsonx.String(name), Description: jsonx.String(description), JSON: object}
	if len(m.Name) > 64 || !validName.MatchString(m.Name) {
		return nil, fmt.Errorf(
			"the name %q is not valid; a name has 1 to 64 characters a-z, 0-9 and single hyphens between them", m.Name)
	}
	if n := utf8.RuneCountInString(m.Description); strings.TrimSpace(m.Description) == "" || n > maxDescription {
		return nil, fmt.Errorf("the description has %d characters; it needs 1 to %d", n, maxDescription)
	}
	return m, nil
}

// cut returns the text between the two lines "---".
func cut(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", errors.New("it is not UTF-8 text")
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	source, _, ended := strings.Cut("\n"+rest, "\n---")
	switch {
	case !ok:
		return "", errors.New(
			`it does not begin with front matter: a line "---", the fields name and description, and a line "---"`)
	case !ended:
		return "", errors.New(`its front matter does not end with a line "---"`)
	case len(source) > maxFrontMatter:
		return "", fmt.Errorf("the front matter is larger than %d bytes", maxFrontMatter)
	}
	return source, nil
}

package skillsclient_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/skills/skillsclient"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

const main = "---\nname: pdf\ndescription: Fill PDF forms\nmetadata:\n  version: 1.0\n---\n\nSee references/FORMS.md.\n"

func dial(t *testing.T, srv *mcpkit.Server) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), srv, client.Timeout(0))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// reads notes what is read from a server.
type reads struct {
	mu   sync.Mutex
	uris []string
}

func (r *reads) middleware(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
		if call.Method() == "resources/read" {
			r.mu.Lock()
			r.uris = append(r.uris, call.Name())
			r.mu.Unlock()
		}
		return next(ctx, call)
	}
}

func (r *reads) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	uris := r.uris
	r.uris = nil
	return uris
}

func TestSkillsAreReadWhenTheyAreAskedFor(t *testing.T) {
	files := fstest.MapFS{
		"acme/pdf/SKILL.md":            {Data: []byte(main)},
		"acme/pdf/references/FORMS.md": {Data: []byte("Fill.\n")},
		"acme/pdf/references/Ä b.bin":  {Data: []byte("\xff\x00")},
		"acme/other/SKILL.md":          {Data: []byte("---\nname: other\ndescription: Other\n---\n")},
	}
	srv, err := mcpkit.New(nil, skills.FS(files))
	require.NoError(t, err)
	r := &reads{}
	srv.Use(r.middleware)
	c := dial(t, srv)

	var found []string
	for s, err := range skillsclient.List(t.Context(), c) {
		require.NoError(t, err)
		found = append(found, s.URI)
	}
	require.Equal(t, []string{"skill://acme/other/SKILL.md", "skill://acme/pdf/SKILL.md"}, found)
	s, err := skillsclient.Get(t.Context(), c, "skill://acme/pdf/SKILL.md")
	require.NoError(t, err)
	require.Equal(t, "pdf", s.Name)
	require.Equal(t, "Fill PDF forms", s.Description)
	require.JSONEq(t, `{"name":"pdf","description":"Fill PDF forms","metadata":{"version":1}}`, string(s.FrontMatter))
	require.Equal(t, skillsclient.File{
		Path: "references/FORMS.md", URI: "skill://acme/pdf/references/FORMS.md", Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("Fill.\n"))), Size: 6,
	}, s.Files[1])
	require.Empty(t, r.take(), "nothing is read before it is asked for")

	instructions, err := s.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, main, instructions)
	require.Equal(t, []string{"skill://acme/pdf/SKILL.md"}, r.take())
	for name, want := range map[string]string{"references/FORMS.md": "Fill.\n", "./references//FORMS.md": "Fill.\n", "references/Ä b.bin": "\xff\x00"} {
		text, err := s.Read(t.Context(), name)
		require.NoError(t, err, name)
		require.Equal(t, want, string(text), name)
	}
	r.take()
	for _, name := range []string{"references", "missing.md", "../other/SKILL.md", "/etc/passwd", "", "."} {
		_, err := s.Read(t.Context(), name)
		require.ErrorAs(t, err, new(*skillsclient.VerificationError), "%q", name)
	}
	require.Empty(t, r.take(), "files that are not listed are not read")

	_, err = skillsclient.Get(t.Context(), c, "skill://acme/none/SKILL.md")
	require.ErrorContains(t, err, `there is no skill "skill://acme/none/SKILL.md"`)
}

func TestFilesThatChangedAreRefused(t *testing.T) {
	files := fstest.MapFS{"pdf/SKILL.md": {Data: []byte(main)}, "pdf/x.md": {Data: []byte("1")}}
	lib := skills.FS(files)
	srv, err := mcpkit.New(nil, lib)
	require.NoError(t, err)
	c := dial(t, srv)
	s, err := skillsclient.Get(t.Context(), c, "skill://pdf/SKILL.md")
	require.NoError(t, err)
	files["pdf/x.md"] = &fstest.MapFile{Data: []byte("2")}
	files["pdf/new.md"] = &fstest.MapFile{Data: []byte("new")}
	require.NoError(t, lib.Reload())
	_, err = s.Read(t.Context(), "x.md")
	require.ErrorContains(t, err, "skillsclient: skill://pdf/x.md: its digest is sha256:")
	_, err = s.Read(t.Context(), "new.md")
	require.EqualError(t, err, "skillsclient: skill://pdf/new.md: the server's entry of the skill does not list it")
	s, err = skillsclient.Get(t.Context(), c, "skill://pdf/SKILL.md")
	require.NoError(t, err)
	text, err := s.Read(t.Context(), "new.md")
	require.NoError(t, err)
	require.Equal(t, "new", string(text))
}

// liar is a server whose entries and files are set by a test.
type liar struct {
	entries []string          // JSON
	files   map[string]string // by URI
}

func (l *liar) serve(t *testing.T) *client.Client {
	srv, err := mcpkit.New(nil, mcpkit.Extend(mcpkit.Extension{
		ID: "io.modelcontextprotocol/skills",
		Methods: []*mcpkit.Method{
			mcpkit.NewMethod("skills/list", func(context.Context, json.RawMessage) (map[string]any, error) {
				skills := []json.RawMessage{}
				for _, e := range l.entries {
					skills = append(skills, json.RawMessage(e))
				}
				return map[string]any{"skills": skills}, nil
			}),
			mcpkit.NewMethod("skills/get", func(context.Context, json.RawMessage) (map[string]any, error) {
				return map[string]any{"skill": json.RawMessage(l.entries[0])}, nil
			}),
		},
	}))
	require.NoError(t, err)
	require.NoError(t, srv.Add(mcpkit.NewResource("skill://{+path}", "files", func(path string) (string, error) {
		text, ok := l.files["skill://"+path]
		if !ok {
			return "", mcpkit.ErrNotFound
		}
		return text, nil
	})))
	return dial(t, srv)
}

// entryOf returns the entry of the skill pdf, and file a file of it.
func entryOf(frontMatter, resources string) string {
	return fmt.Sprintf(`{"uri":"skill://pdf/SKILL.md","frontmatter":%s,"resources":%s}`, frontMatter, resources)
}

func file(path, text string) string {
	return fmt.Sprintf(`{"uri":"skill://pdf/%s","digest":"sha256:%x","size":%d}`, path, sha256.Sum256([]byte(text)), len(text))
}

const frontMatter = `{"metadata":{"version":1},"description":"Fill PDF forms","name":"pdf"}`

func TestLoadRefusesWhatIsNotAsListed(t *testing.T) {
	many := file("SKILL.md", main)
	for i := range 512 {
		many += "," + file(fmt.Sprint(i), "")
	}
	for _, test := range []struct{ name, entry, text, err string }{
		{"as listed", entryOf(frontMatter, "["+file("SKILL.md", main)+"]"), main, ""},
		{"another text of the same length", entryOf(frontMatter, "["+file("SKILL.md", main)+"]"), strings.Replace(main, "See", "Run", 1), "skillsclient: skill://pdf/SKILL.md: its digest is sha256:"},
		{"longer", entryOf(frontMatter, "["+file("SKILL.md", main)+"]"), main + "more", "skillsclient: skill://pdf/SKILL.md: it has 101 bytes; the server's entry says 97"},
		{"other front matter", entryOf(`{"name":"pdf","description":"Harmless"}`, "["+file("SKILL.md", main)+"]"), main, "skillsclient: skill://pdf/SKILL.md: its front matter is not that of the server's entry"},
		{"a field more", entryOf(`{"name":"pdf","description":"Fill PDF forms","metadata":{"version":1},"allowed-tools":"Bash"}`, "["+file("SKILL.md", main)+"]"), main, "its front matter is not that of the server's entry"},
		{"no front matter", entryOf(frontMatter, "["+file("SKILL.md", "# PDF")+"]"), "# PDF", "skillsclient: skill://pdf/SKILL.md: it does not begin with front matter"},
		{"made when it is read", entryOf(frontMatter, `"dynamic"`), main, "skillsclient: skill://pdf/SKILL.md: the server's entry of the skill does not list it"},
		{"too many files", entryOf(frontMatter, "["+many+"]"), main, "skillsclient: skill://pdf/SKILL.md has 513 files; at most 512 are accepted"},
		{"too many bytes", entryOf(frontMatter, "["+file("SKILL.md", main)+`,{"uri":"skill://pdf/x","digest":"sha256:`+strings.Repeat("0", 64)+`","size":9007199254740991}]`), main, "skillsclient: skill://pdf/SKILL.md has more than 16777216 bytes; no more are accepted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &liar{entries: []string{test.entry}, files: map[string]string{"skill://pdf/SKILL.md": test.text}}
			s, err := skillsclient.Get(t.Context(), l.serve(t), "skill://pdf/SKILL.md")
			require.NoError(t, err)
			text, err := s.Load(t.Context())
			if test.err == "" {
				require.NoError(t, err)
				require.Equal(t, test.text, text)
				return
			}
			require.ErrorContains(t, err, test.err)
			require.Empty(t, text)
		})
	}
}

func TestEntriesThatAreNotValidAreRefused(t *testing.T) {
	good := "[" + file("SKILL.md", main) + "]"
	valid := entryOf(frontMatter, good)
	for _, test := range []struct{ name, entry, err string }{
		{"not an object", `7`, "the server lists a skill that is not valid"},
		{"no resources", `{"uri":"skill://pdf/SKILL.md","frontmatter":` + frontMatter + `}`, `resources is neither a list nor "dynamic"`},
		{"resources null", entryOf(frontMatter, "null"), `resources is neither a list nor "dynamic"`},
		{"another word", entryOf(frontMatter, `"static"`), `resources is neither a list nor "dynamic"`},
		{"empty resources", entryOf(frontMatter, "[]"), "its SKILL.md is not listed"},
		{"no front matter", entryOf("null", good), "the front matter needs a name and a description, both texts"},
		{"no description", entryOf(`{"name":"pdf"}`, good), "the front matter needs a name and a description, both texts"},
		{"name of another", entryOf(`{"name":"doc","description":"x"}`, good), `the URI does not end in "doc/SKILL.md"`},
		{"name not valid", entryOf(`{"name":"../pdf","description":"x"}`, good), `the name "../pdf" is not valid`},
		{"file twice", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("SKILL.md", main)+"]"), `the file "skill://pdf/SKILL.md" is listed twice`},
		{"file of another skill", entryOf(frontMatter, "["+file("SKILL.md", main)+","+strings.Replace(file("x", ""), "pdf", "pay", 1)+"]"), `the file "skill://pay/x" is not in its directory`},
		{"file outside of the directory", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("%2e%2e/%2E%2e/etc/passwd", "")+"]"), `is not in its directory`},
		{"file outside of the directory, not encoded", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("a/../../x", "")+"]"), `is not in its directory`},
		{"file outside of the directory, with an encoded slash", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("..%2fx", "")+"]"), `is not in its directory`},
		{"file outside of the directory on Windows", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("..%5Cx", "")+"]"), `is not in its directory`},
		{"absolute path", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("/etc/passwd", "")+"]"), `is not in its directory`},
		{"the directory itself", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("", "")+"]"), `is not in its directory`},
		{"path that is not UTF-8", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("%ff", "")+"]"), `is not in its directory`},
		{"path that cannot be decoded", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("%zz", "")+"]"), `is not in its directory`},
		{"two URIs of one path", entryOf(frontMatter, "["+file("SKILL.md", main)+","+file("%53KILL.md", "x")+"]"), `is listed twice`},
		{"no size", entryOf(frontMatter, strings.Replace(good, `"size"`, `"length"`, 1)), "the digest or the size of the file"},
		{"negative size", entryOf(frontMatter, strings.Replace(good, `"size":`, `"size":-`, 1)), "the digest or the size of the file"},
		{"digest in capital letters", entryOf(frontMatter, strings.Replace(good, "sha256:", "SHA256:", 1)), "the digest or the size of the file"},
		{"short digest", entryOf(frontMatter, `[{"uri":"skill://pdf/SKILL.md","digest":"sha256:00","size":1}]`), "the digest or the size of the file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := (&liar{entries: []string{test.entry, valid}}).serve(t)
			_, err := skillsclient.Get(t.Context(), c, "skill://pdf/SKILL.md")
			require.ErrorContains(t, err, test.err)
			var faults, found int
			for s, err := range skillsclient.List(t.Context(), c) {
				if err != nil {
					faults++
				} else {
					require.Equal(t, "pdf", s.Name)
					found++
				}
			}
			require.Equal(t, 1, faults)
			require.Equal(t, 1, found, "List continues after an entry that is not valid")
		})
	}
}

func TestGetRefusesAnotherSkill(t *testing.T) {
	c := (&liar{entries: []string{entryOf(frontMatter, `"dynamic"`)}}).serve(t)
	_, err := skillsclient.Get(t.Context(), c, "skill://doc/SKILL.md")
	require.EqualError(t, err, `skillsclient: the server returned the skill "skill://pdf/SKILL.md" for "skill://doc/SKILL.md"`)
}

func TestServersWithoutSkillsAreNotAsked(t *testing.T) {
	srv, err := mcpkit.New(nil)
	require.NoError(t, err)
	c := dial(t, srv)
	_, err = skillsclient.Get(t.Context(), c, "skill://pdf/SKILL.md")
	require.ErrorIs(t, err, skillsclient.ErrNotOffered)
	for _, err := range skillsclient.List(t.Context(), c) {
		require.ErrorIs(t, err, skillsclient.ErrNotOffered)
	}
}

package skills_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/skills/internal/skillmd"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// files makes a file system of paths and texts.
func files(texts ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(texts); i += 2 {
		m[texts[i]] = &fstest.MapFile{Data: []byte(texts[i+1])}
	}
	return m
}

// skillMD returns a SKILL.md.
func skillMD(name string) string {
	return "---\nname: " + name + "\ndescription: Does " + name + "\n---\n\nDo it.\n"
}

func serve(t *testing.T, opts ...mcpkit.Option) *mcpkit.Server {
	t.Helper()
	srv, err := mcpkit.New(nil, append(opts, mcpkit.Name("test", "1"))...)
	require.NoError(t, err)
	return srv
}

// as is a server whose callers have scopes.
func as(t *testing.T, srv *mcpkit.Server, scopes ...string) *mcptest.Server {
	return mcptest.New(t, srv).As(&oauth.Principal{Subject: "ann", Scopes: scopes})
}

func dial(t *testing.T, target any, opts ...client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, append(opts, client.Timeout(0))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// ask sends a request and returns its result, or its error, as text. Members that all results have
// are left out.
func ask(t *testing.T, c *client.Client, method, params string) string {
	t.Helper()
	var result map[string]json.RawMessage
	if err := c.Request(t.Context(), method, json.RawMessage(params), &result); err != nil {
		return strings.TrimPrefix(err.Error(), "client: ")
	}
	delete(result, "_meta")
	delete(result, "resultType")
	text, err := json.Marshal(result)
	require.NoError(t, err)
	return string(text)
}

// digest returns the digest of a text.
func digest(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

func TestSkillsAreListedWithDigestsAndSizes(t *testing.T) {
	const main, forms = "---\nname: pdf\ndescription: Fill PDF forms\nmetadata:\n  version: \"2.1\"\n---\nRead references/FORMS.md.\n", "Fill the form.\n"
	c := dial(t, serve(t, skills.FS(files("pdf/SKILL.md", main, "pdf/references/FORMS.md", forms, "README.md", "not part of a skill"))))
	entry := `{"frontmatter":{"name":"pdf","description":"Fill PDF forms","metadata":{"version":"2.1"}},` +
		`"resources":[{"digest":"` + digest(main) + `","size":99,"uri":"skill://pdf/SKILL.md"},` +
		`{"digest":"` + digest(forms) + `","size":15,"uri":"skill://pdf/references/FORMS.md"}],"uri":"skill://pdf/SKILL.md"}`
	require.JSONEq(t, `{"cacheScope":"public","skills":[`+entry+`],"ttlMs":0}`, ask(t, c, "skills/list", `{}`))
	require.JSONEq(t, `{"cacheScope":"public","skill":`+entry+`,"ttlMs":0}`, ask(t, c, "skills/get", `{"uri":"skill://pdf/SKILL.md"}`))
	require.Equal(t, `skills/get: there is no skill "skill://pdf" (code -32602)`, ask(t, c, "skills/get", `{"uri":"skill://pdf"}`))
	require.Equal(t, `skills/get: there is no skill "skill://pdf/references/FORMS.md" (code -32602)`, ask(t, c, "skills/get", `{"uri":"skill://pdf/references/FORMS.md"}`))
	settings, ok := c.Extension("io.modelcontextprotocol/skills")
	require.True(t, ok)
	require.Equal(t, protocol.Object{"directoryRead": []byte("true")}, settings)
	require.NotNil(t, c.Capabilities().Resources)
	require.JSONEq(t, `{"cacheScope":"public","resources":[{"uri":"skill://pdf/SKILL.md","name":"pdf","description":"Fill PDF forms","mimeType":"text/markdown","size":99}],"ttlMs":0}`,
		ask(t, c, "resources/list", `{}`))
	require.Equal(t, `resources/read "skill://README.md": resource "skill://README.md" not found (code -32602)`, ask(t, c, "resources/read", `{"uri":"skill://README.md"}`))
}

func TestDirectoriesListTheirChildren(t *testing.T) {
	c := dial(t, serve(t, skills.FS(files(
		"top/acme/pdf/SKILL.md", skillMD("pdf"),
		"top/acme/pdf/a b/über.md", "x",
		"top/acme/pdf/a b/data.bin", "\xff\x00",
	), skills.Dir("./top/"))))
	read := func(uri string) string {
		return ask(t, c, "resources/directory/read", fmt.Sprintf(`{"uri":%q}`, uri))
	}
	require.JSONEq(t, `{"cacheScope":"public","ttlMs":0,"resources":[{"uri":"skill://acme/pdf","name":"pdf","mimeType":"inode/directory"}]}`, read("skill://acme"))
	require.JSONEq(t, `{"cacheScope":"public","ttlMs":0,"resources":[
		{"uri":"skill://acme/pdf/SKILL.md","name":"pdf","description":"Does pdf","mimeType":"text/markdown","size":48},
		{"uri":"skill://acme/pdf/a%20b","name":"a b","mimeType":"inode/directory"}]}`, read("skill://acme/pdf"))
	require.JSONEq(t, `{"cacheScope":"public","ttlMs":0,"resources":[
		{"uri":"skill://acme/pdf/a%20b/%C3%BCber.md","name":"über.md","mimeType":"text/markdown","size":1},
		{"uri":"skill://acme/pdf/a%20b/data.bin","name":"data.bin","mimeType":"application/octet-stream","size":2}]}`, read("skill://acme/pdf/a%20b"))
	for _, uri := range []string{"skill://acme/pdf/SKILL.md", "skill://acme/pdf/", "skill://nobody", "skill:/", "skill://"} {
		require.Equal(t, fmt.Sprintf("resources/directory/read: %q is not a directory (code -32602)", uri), read(uri))
	}
}

func TestFilesAreReadByteForByte(t *testing.T) {
	texts := map[string]string{
		"crlf.txt": "a\r\nb\r\n", "bom.md": "\ufeffx", "empty.txt": "", "nul.txt": "a\x00b", "binary.png": "\x89PNG\xff\xfe", "emoji.md": "👋 \u2028",
	}
	m := files("all/SKILL.md", skillMD("all"))
	for name, text := range texts {
		m["all/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	c := dial(t, serve(t, skills.FS(m)))
	for name, text := range texts {
		r, err := c.ReadResource(t.Context(), "skill://all/"+name)
		require.NoError(t, err, name)
		require.Len(t, r.Contents, 1, name)
		if got := r.Contents[0]; got.Text != nil {
			require.Equal(t, text, *got.Text, name)
		} else {
			require.Equal(t, text, string(got.Blob), name)
		}
	}
}

func TestSkillsMayContainSkills(t *testing.T) {
	c := dial(t, serve(t, skills.FS(files(
		"outer/+/note.md", "sorts before SKILL.md",
		"outer/SKILL.md", skillMD("outer"),
		"outer/inner/SKILL.md", skillMD("inner"),
		"outer/inner/x.md", "x",
		"outer/.env", "SECRET=1",
		".git/config", "x",
	))))
	var list struct {
		Skills []struct {
			URI       string
			Resources []struct{ URI string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(ask(t, c, "skills/list", `{}`)), &list))
	require.Equal(t, `[{skill://outer/SKILL.md [{skill://outer/%2B/note.md} {skill://outer/SKILL.md} {skill://outer/inner/SKILL.md} {skill://outer/inner/x.md}]} `+
		`{skill://outer/inner/SKILL.md [{skill://outer/inner/SKILL.md} {skill://outer/inner/x.md}]}]`, fmt.Sprint(list.Skills))
}

func TestListsHavePages(t *testing.T) {
	m := fstest.MapFS{}
	for i := range 120 {
		name := fmt.Sprintf("s%03d", i)
		m[name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(skillMD(name))}
	}
	c := dial(t, serve(t, skills.FS(m)))
	var uris []string
	var sizes []int
	for cursor := ""; ; {
		var list struct {
			Skills     []struct{ URI string }
			NextCursor string
		}
		require.NoError(t, json.Unmarshal([]byte(ask(t, c, "skills/list", fmt.Sprintf(`{"cursor":%q}`, cursor))), &list))
		for _, s := range list.Skills {
			uris = append(uris, s.URI)
		}
		sizes = append(sizes, len(list.Skills))
		if cursor = list.NextCursor; cursor == "" {
			break
		}
	}
	require.Equal(t, []int{50, 50, 20}, sizes)
	require.Equal(t, "skill://s119/SKILL.md", uris[119])
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(uris))), 120)
}

// changes notes what a client is notified of.
type changes struct{ got chan string }

func (c changes) ResourcesChanged(context.Context)              { c.got <- "list" }
func (c changes) ResourceUpdated(_ context.Context, uri string) { c.got <- uri }

func TestReloadReplacesAllOrNothing(t *testing.T) {
	m := files("a/SKILL.md", skillMD("a"), "a/x.md", "1", "b/SKILL.md", skillMD("b"))
	lib := skills.FS(m)
	first, second := serve(t, lib), serve(t, lib)
	got := make(chan string, 10)
	c := dial(t, first, client.Version(protocol.V20251125), client.Handlers(changes{got}))
	require.NoError(t, c.Request(t.Context(), "resources/subscribe", json.RawMessage(`{"uri":"skill://a/x.md"}`), nil))
	before := ask(t, c, "skills/list", `{}`)

	require.NoError(t, lib.Reload())
	m["a/x.md"] = &fstest.MapFile{Data: []byte("2")}
	m["b/SKILL.md"] = &fstest.MapFile{Data: []byte(skillMD("other"))}
	require.EqualError(t, lib.Reload(), `skills: b/SKILL.md: the name "other" is not that of the directory, "b"`)
	require.Equal(t, before, ask(t, c, "skills/list", `{}`))
	require.Contains(t, ask(t, c, "resources/read", `{"uri":"skill://a/x.md"}`), `"text":"1"`)
	require.Empty(t, got, "nothing has changed")

	delete(m, "b/SKILL.md")
	require.NoError(t, lib.Reload())
	require.ElementsMatch(t, []string{"list", "skill://a/x.md"}, []string{<-got, <-got})
	for _, srv := range []*mcpkit.Server{first, second} {
		c := dial(t, srv)
		require.Contains(t, ask(t, c, "resources/read", `{"uri":"skill://a/x.md"}`), `"text":"2"`)
		require.Contains(t, ask(t, c, "skills/get", `{"uri":"skill://b/SKILL.md"}`), "there is no skill")
		require.Contains(t, ask(t, c, "resources/read", `{"uri":"skill://b/SKILL.md"}`), "not found")
	}
}

func TestSymbolicLinksAreRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "SKILL.md"), []byte(skillMD("a")), 0o600))
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "a", "passwd")); err != nil {
		t.Skipf("this system makes no symbolic links: %v", err)
	}
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "b")))
	_, err := mcpkit.New(nil, skills.FS(os.DirFS(dir)))
	require.EqualError(t, err, "mcpkit: extension \"io.modelcontextprotocol/skills\": "+
		"skills: a/passwd: a symbolic link; skills have only files and directories\n"+
		"skills: b: a symbolic link; skills have only files and directories")
}

func TestFaultsAreFoundAtStartup(t *testing.T) {
	many := files("a/SKILL.md", skillMD("a"))
	for i := range 512 {
		many[fmt.Sprintf("a/%d", i)] = &fstest.MapFile{}
	}
	half := &fstest.MapFile{Data: make([]byte, 8<<20)}
	large := files("a/SKILL.md", skillMD("a"))
	large["a/1.png"], large["a/2.png"] = half, half
	for _, test := range []struct {
		name string
		lib  *skills.Library
		err  string
	}{
		{"no skills", skills.FS(files("README.md", "x")), "skills: there are no skills; a skill is a directory with a file SKILL.md"},
		{"no directory", skills.FS(files("a/SKILL.md", skillMD("a")), skills.Dir("b")), "skills: open b: file does not exist"},
		{"a file as directory", skills.FS(files("a", "x"), skills.Dir("a")), "skills: a: not a directory"},
		{"in the root", skills.FS(files("SKILL.md", skillMD("a"))), "skills: SKILL.md: it is in the root; a skill is a directory with its name"},
		{"no front matter", skills.FS(files("a/SKILL.md", "# A")), `skills: a/SKILL.md: it does not begin with front matter: a line "---", the fields name and description, and a line "---"`},
		{"other name", skills.FS(files("a/SKILL.md", skillMD("b"))), `skills: a/SKILL.md: the name "b" is not that of the directory, "a"`},
		{"small letters", skills.FS(files("a/skill.md", skillMD("a"), "b/SKILL.md", skillMD("b"))), "skills: a/skill.md: the name is SKILL.md, in capital letters"},
		{"backslash", skills.FS(files("a/SKILL.md", skillMD("a"), `a/b\x`, "")), `skills: a/b\x: the path has a backslash, which is a slash on Windows`},
		{"too many files", skills.FS(many), "skills: a: more than 512 files, which is what hosts accept in a skill"},
		{"too many bytes", skills.FS(large), "skills: a: more than 16777216 bytes, which is what hosts accept in a skill"},
		{"a file that cannot be read", skills.FS(broken{files("a/SKILL.md", skillMD("a"), "a/x", "")}), "skills: a/x: broken"},
		{"no file system", skills.FS(nil), "skills: the file system is nil"},
		{"several faults", skills.FS(files("a/SKILL.md", "", "b/SKILL.md", skillMD("c"))), "skills: a/SKILL.md: it does not begin with front matter: a line \"---\", the fields name and description, and a line \"---\"\nskills: b/SKILL.md: the name"},
	} {
		_, err := mcpkit.New(nil, test.lib)
		require.ErrorContains(t, err, `mcpkit: extension "io.modelcontextprotocol/skills": `+test.err, test.name)
	}
	one := skills.FS(files("a/SKILL.md", skillMD("a")), skills.Scopes("staff"))
	_, err := mcpkit.New(nil, one, one)
	require.ErrorContains(t, err, "the server has it already")
	_, err = mcpkit.New(nil, one)
	require.ErrorContains(t, err, `it demands the scopes "staff", but nobody authenticates callers`)
}

// broken is a file system whose file a/x cannot be read.
type broken struct{ fs.FS }

func (b broken) Open(name string) (fs.File, error) {
	if name == "a/x" {
		return nil, errors.New("broken")
	}
	return b.FS.Open(name)
}

func TestSkillsAtTheLimitsAreServed(t *testing.T) {
	m := files("a/SKILL.md", skillMD("a"))
	m["a/large.png"] = &fstest.MapFile{Data: bytes.Repeat([]byte{0xff}, 16<<20-len(skillMD("a")))}
	for i := range 510 {
		m[fmt.Sprintf("a/%d", i)] = &fstest.MapFile{}
	}
	c := dial(t, serve(t, skills.FS(m)))
	require.Contains(t, ask(t, c, "skills/list", `{}`), "skill://a/509")
	r, err := c.ReadResource(t.Context(), "skill://a/large.png")
	require.NoError(t, err)
	require.Len(t, r.Contents[0].Blob, len(m["a/large.png"].Data))
}

func TestSkillsOfOtherCallersAreNotShown(t *testing.T) {
	srv := serve(t, mcpkit.Authenticated(), skills.FS(files("pay/SKILL.md", skillMD("pay"), "pay/docs/salaries.md", "secret"), skills.Scopes("hr")))
	hr := as(t, srv, "hr").Client()
	require.Contains(t, ask(t, hr, "skills/list", `{}`), "skill://pay/docs/salaries.md")
	require.Contains(t, ask(t, hr, "resources/directory/read", `{"uri":"skill://pay"}`), "skill://pay/docs")
	require.Contains(t, ask(t, hr, "resources/read", `{"uri":"skill://pay/docs/salaries.md"}`), "secret")
	for _, c := range []*client.Client{dial(t, srv), as(t, srv).Client(), as(t, srv, "sales").Client()} {
		require.JSONEq(t, `{"cacheScope":"private","skills":[],"ttlMs":0}`, ask(t, c, "skills/list", `{}`))
		require.NotContains(t, ask(t, c, "resources/list", `{}`), "pay")
		// The responses are those for names that do not exist.
		for _, test := range []struct{ method, uri, none string }{
			{"skills/get", "skill://pay/SKILL.md", "skill://not/SKILL.md"},
			{"resources/directory/read", "skill://pay", "skill://not"},
			{"resources/directory/read", "skill://pay/docs", "skill://not/docs"},
			{"resources/read", "skill://pay/SKILL.md", "skill://not/SKILL.md"},
			{"resources/read", "skill://pay/docs/salaries.md", "skill://not/docs/salaries.md"},
		} {
			hidden := ask(t, c, test.method, fmt.Sprintf(`{"uri":%q}`, test.uri))
			none := ask(t, c, test.method, fmt.Sprintf(`{"uri":%q}`, test.none))
			require.Equal(t, strings.ReplaceAll(none, "//not", "//pay"), hidden)
		}
	}
}

func TestMountedServersShowTheirSkills(t *testing.T) {
	lib := skills.FS(files("a/SKILL.md", skillMD("a")))
	parent := serve(t)
	require.NoError(t, parent.Mount("child", serve(t, lib)))
	c := dial(t, parent)
	require.Contains(t, ask(t, c, "skills/list", `{}`), "skill://a/SKILL.md")
	require.Contains(t, ask(t, c, "resources/read", `{"uri":"skill://a/SKILL.md"}`), "Do it.")
	_, ok := c.Extension("io.modelcontextprotocol/skills")
	require.True(t, ok)
}

func TestTwoMountedServersCannotBothHaveSkills(t *testing.T) {
	srv, a, b := serve(t), serve(t, skills.FS(files("a/SKILL.md", skillMD("a")))), serve(t, skills.FS(files("b/SKILL.md", skillMD("b"))))
	require.NoError(t, srv.Mount("a", a))
	require.Regexp(t, `mcpkit: Mount: mounted as "b" \(skills_test.go:\d+\): the method "resources/directory/read" is registered already, by the server mounted as "a" \(skills_test.go:\d+\)$`, srv.Mount("b", b))
}

func TestLegacyClientsGetSkills(t *testing.T) {
	srv := serve(t, skills.FS(files("a/SKILL.md", skillMD("a"))))
	for _, v := range protocol.Supported {
		c := dial(t, srv, client.Version(v))
		_, ok := c.Extension("io.modelcontextprotocol/skills")
		require.True(t, ok, v)
		require.Contains(t, ask(t, c, "skills/list", `{}`), "skill://a/SKILL.md", v)
	}
}

func TestFrontMatterBecomesJSON(t *testing.T) {
	const text = "---\nname: pdf\ndescription: >-\n  Fill forms,\n  and more\nmetadata:\n  version: \"1.10\"\n  tags: [x, 'y']\n---\nbody"
	const want = `{"name":"pdf","description":"Fill forms, and more","metadata":{"version":"1.10","tags":["x","y"]}}`
	m, err := skillmd.Parse([]byte(text))
	require.NoError(t, err)
	require.Equal(t, "pdf", m.Name)
	require.Equal(t, "Fill forms, and more", m.Description)
	require.JSONEq(t, want, string(m.JSON))
	m, err = skillmd.Parse([]byte("\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")))
	require.NoError(t, err)
	require.JSONEq(t, want, string(m.JSON), "with the line ends of Windows")
}

func TestFrontMatterThatIsNotValidIsRefused(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		digit := string(rune('0' + i))
		next := string(rune('1' + i))
		bomb += "a" + next + ": &a" + next + " [" + strings.TrimSuffix(strings.Repeat("*a"+digit+", ", 10), ", ") + "]\n"
	}
	for _, test := range []struct{ name, text, err string }{
		{"none", "# Title\n", `it does not begin with front matter: a line "---", the fields name and description, and a line "---"`},
		{"no end", "---\nname: x\n", `its front matter does not end with a line "---"`},
		{"empty", "---\n---\n", "the front matter is not valid YAML: "},
		{"not a mapping", "---\n- a\n---\n", "the front matter is not valid YAML: "},
		{"not YAML", "---\na: [\n---\n", "the front matter is not valid YAML: "},
		{"twice", "---\na: x\na: y\n---\n", `line 3: mapping key "a" already defined at line 2`},
		{"infinity", "---\na: .inf\n---\n", "the front matter cannot be written as JSON: "},
		{"large", "---\na: " + strings.Repeat("x\n  ", 40_000) + "\n---\n", "the front matter is larger than 16384 bytes"},
		{"not text", "---\nname: \xff\n---\n", "it is not UTF-8 text"},
		{"aliases of aliases", "---\n" + bomb + "---\n", "the front matter is not valid YAML: "},
		{"many brackets", "---\na: " + strings.Repeat("[", 16_000) + "\n---\n", "the front matter is not valid YAML: "},
		{"no description", "---\nname: a\n---\n", "the front matter needs a name and a description, both texts"},
		{"empty description", "---\nname: a\ndescription: ' '\n---\n", "the description has 1 characters; it needs 1 to 1024"},
		{"capital letters", "---\nname: A_\ndescription: x\n---\n", `the name "A_" is not valid; a name has 1 to 64 characters a-z, 0-9 and single hyphens between them`},
		{"two hyphens", "---\nname: a--b\ndescription: x\n---\n", `the name "a--b" is not valid`},
	} {
		_, err := skillmd.Parse([]byte(test.text))
		require.ErrorContains(t, err, test.err, test.name)
	}
}

func FuzzFrontMatterIsAnObjectOrAnError(f *testing.F) {
	f.Add([]byte("---\nname: x\ndescription: x\nmetadata: {a: [1, 'b']}\n---\n"))
	f.Add([]byte("---\na: |\n  x\n---\n"))
	f.Add([]byte("---\na: &x 1\n<<: {b: *x, 2: !!binary aGk=}\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := skillmd.Parse(text); err == nil {
			require.True(t, json.Valid(m.JSON), "%q", m.JSON)
		}
	})
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/catalog"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Lab has a tool for each kind of content.
type Lab struct {
	_ mcpkit.Info `name:"lab" version:"2.0.0"`
	_ struct {
		Variable mcpkit.Tool     `params:"name" desc:"Returns a variable."`
		Kinds    mcpkit.Tool     `desc:"Returns all kinds of content."`
		Bare     mcpkit.Tool     `desc:"Returns only structured content."`
		Measure  mcpkit.Tool     `hints:"readonly" desc:"Measures."`
		Picture  mcpkit.Resource `uri:"lab://pictures/{name}" mime:"image/png" desc:"A picture."`
		Readme   mcpkit.Resource `uri:"lab://readme" mime:"text/plain" desc:"What this is."`
		Explain  mcpkit.Prompt   `params:"topic,tone?" desc:"Explains."`
	}
}

func (*Lab) Variable(name string) string { return os.Getenv(name) }

// pixel is not a valid image, which nobody here needs.
var pixel = []byte("\x89PNG\r\n\x1a\npixel")

func (*Lab) Kinds() *protocol.CallToolResult {
	return &protocol.CallToolResult{Content: []protocol.Content{
		&protocol.TextContent{Text: "text"},
		&protocol.ImageContent{Data: pixel, MIMEType: "image/png"},
		&protocol.ImageContent{Data: pixel, MIMEType: "image/png"},
		&protocol.AudioContent{Data: []byte("sound"), MIMEType: "audio/wav"},
		&protocol.ResourceLink{URI: "lab://readme", Name: "readme", MIMEType: "text/plain", Size: new(int64(12))},
		&protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: "lab://a", MIMEType: "text/plain", Text: new("words")}},
		&protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: "lab://x/../../etc/pass wd", MIMEType: "application/pdf", Blob: []byte("%PDF")}},
	}}
}

func (*Lab) Bare() *protocol.CallToolResult {
	return &protocol.CallToolResult{StructuredContent: json.RawMessage(`{"a":1}`)}
}

type measurement struct {
	Samples int      `json:"samples" default:"3" validate:"min=1,max=9" desc:"How many."`
	Scale   string   `json:"scale" validate:"oneof=kelvin celsius" desc:"The unit."`
	Mode    string   `json:"mode" validate:"oneof=fast slow" desc:"fast or slow"`
	Names   []string `json:"names,omitempty" validate:"max=4"`
	Label   string   `json:"label,omitempty" validate:"min=2"`
	Precise bool     `json:"precise,omitempty"`
}

func (*Lab) Measure(in measurement) int { return in.Samples }

func (*Lab) Picture(name string) []byte { return append(pixel, name...) }

func (*Lab) Readme() string { return "This is a lab." }

func (*Lab) Explain(topic, tone string) string { return "Explain " + topic + tone }

// lab returns the command line of a Lab.
func lab(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return self + " " + asLab
}

// said runs the program, which must end with the code, and returns its output.
func said(t *testing.T, code int, args ...string) (out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	require.Equal(t, code, run(t.Context(), args, streams{in: strings.NewReader(""), out: &o, err: &e}), "%q: %s", args, &e)
	return o.String(), e.String()
}

func TestServersGetTheVariablesThatFlagsName(t *testing.T) {
	t.Setenv("MCPKIT_TEST_DSN", "file.db")
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{nil, "\n"},
		{[]string{"--env", "MCPKIT_TEST_DSN"}, "file.db\n"},
		{[]string{"--env", "MCPKIT_TEST_DSN=other=db"}, "other=db\n"},
		{[]string{"--env", "A=b", "--env", "MCPKIT_TEST_DSN="}, "\n"},
		{[]string{"--inherit-env"}, "file.db\n"},
	} {
		out, errs := said(t, exitOK, append([]string{"call", lab(t), "variable", "name=MCPKIT_TEST_DSN"}, test.flags...)...)
		require.Equal(t, test.want, out, "%q", test.flags)
		require.Empty(t, errs)
	}
}

func TestOnATerminalWithheldVariablesAreCounted(t *testing.T) {
	t.Setenv("MCPKIT_TEST_DSN", "file.db")
	t.Setenv("NO_COLOR", "1")
	t.Setenv("TERM", "xterm")
	for _, flag := range []string{"", "--env=A=b", "--inherit-env"} {
		screen := new(terminal)
		args := strings.Fields("call " + flag)
		require.Equal(t, exitOK, run(t.Context(), append(args, lab(t), "bare"), streams{in: strings.NewReader(""), out: io.Discard, err: screen}), screen.String())
		if flag != "" {
			require.Empty(t, screen.String())
			continue
		}
		require.Regexp(t, `^\(\d+ variables of your environment are withheld from the server; --env NAME passes one on, --inherit-env all\)\n$`, screen.String())
	}
}

func TestAllKindsOfContentAreShown(t *testing.T) {
	url, _ := serve(t, bare, &Lab{})
	out, _ := said(t, exitOK, "call", url, "kinds")
	require.Equal(t, `text
[image image/png, 13 bytes; --save FOLDER writes it to a file]
[image image/png, 13 bytes; --save FOLDER writes it to a file]
[audio audio/wav, 5 bytes; --save FOLDER writes it to a file]
[link lab://readme text/plain, 12 bytes, readme]
[resource lab://a text/plain, 5 bytes]
words
[resource lab://x/../../etc/pass wd application/pdf, 4 bytes; --save FOLDER writes it to a file]
`, out)
	out, _ = said(t, exitOK, "call", url, "bare")
	require.Equal(t, `{"a":1}`+"\n", out)
}

func TestBinaryContentIsSaved(t *testing.T) {
	url, _ := serve(t, bare, &Lab{})
	dir := filepath.Join(t.TempDir(), "new")
	files := map[string]string{
		"image.png": string(pixel), "image-2.png": string(pixel), "audio.wav": "sound", "pass_wd.pdf": "%PDF",
	}
	for _, output := range []string{"text", "json"} {
		out, errs := said(t, exitOK, "call", "--output", output, url, "kinds", "--save", dir)
		for name, want := range files {
			got, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, want, string(got))
			if output == "text" {
				require.Contains(t, out, ", saved as "+filepath.Join(dir, name)+"]\n")
			} else {
				require.True(t, json.Valid([]byte(out)))
				require.Equal(t, len(files), strings.Count(errs, "mcpkit call: saved "+dir), errs)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2*len(files), "the second run replaced nothing")

	out, _ := said(t, exitOK, "read", url, "lab://pictures/sun", "--save", dir)
	require.Equal(t, "[resource lab://pictures/sun image/png, 16 bytes, saved as "+filepath.Join(dir, "sun.png")+"]\n", out)

	file := filepath.Join(dir, "sun.png")
	_, errs := said(t, exitConnection, "call", url, "kinds", "--save", file) // not a folder
	require.Contains(t, errs, "not a directory")
}

// Names come from the server, and must not leave the folder.
func TestFileNamesAreSafe(t *testing.T) {
	for name, want := range map[string]string{
		"image":                      "image.png",
		"file:///a/b.txt":            "b.txt",
		"note://welcome":             "welcome.png",
		"x://a/../..":                "file.png",
		"x://a/.ssh":                 "ssh.png",
		`x:\..\..\boot.ini`:          "boot.ini",
		"x://a/b?c=/d/e":             "b.png",
		"x://a/%2e%2e%2fetc":         "etc.png",
		"":                           "file.png",
		"x://a/\x1b[31mred":          "31mred.png",
		strings.Repeat("long", 1000): strings.Repeat("long", 25) + ".png",
	} {
		require.Equal(t, want, fileName(name, "image/png; q=1"), name)
	}
	require.Equal(t, "x.bin", fileName("x", "application/x-unknown"))
}

func TestInspectShowsDefaultsAndBounds(t *testing.T) {
	url, _ := serve(t, bare, &Lab{})
	out, _ := said(t, exitOK, "inspect", url)
	require.Contains(t, out, `
tool measure reads only, 133 tokens
  Measures.
  takes samples? integer (minimum 1, maximum 9, default 3) How many.
  takes scale "kelvin" | "celsius" The unit.
  takes mode "fast" | "slow" fast or slow
  takes names? array of string (maxItems 4)
  takes label? string (minLength 2)
  takes precise? boolean
  gives integer
`)
}

func TestInspectWritesTheOverridesThatChangeNothing(t *testing.T) {
	url, _ := serve(t, bare, &Lab{})
	out, _ := said(t, exitOK, "inspect", "--overrides", url)
	require.Contains(t, out, `{
  "prompts": {
    "explain": {
      "title": "",
      "description": "Explains.",
      "arguments": {
        "tone": {
          "description": ""
        },
`)
	require.Contains(t, out, `
        "samples": {
          "description": "How many."
        },
`)
	require.Contains(t, out, `
  "resources": {
    "lab://pictures/{name}": {
      "title": "",
      "description": "A picture."
    },
    "lab://readme": {
`)
	same, err := catalog.Overrides([]byte(out), nil)
	require.NoError(t, err)
	again, _ := serve(t, bare, &Lab{}, same)
	unchanged, _ := said(t, exitOK, "inspect", "-o", "json", url)
	after, _ := said(t, exitOK, "inspect", "-o", "json", again)
	require.Equal(t, unchanged, after)
}

func TestScriptsAnswerForms(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		url := desk(t, bare)
		order := func(code int, flags ...string) (out, errs string) {
			return said(t, code, append([]string{"call", url, "order", "-o", "json", "--protocol-version", version}, flags...)...)
		}
		out, _ := order(exitOK, "--answer", "seat=2", "--answer", "meals=rice,fish", "--answer", "name=Ada", "--answer", "agreed=yes", "--yes")
		var res struct {
			StructuredContent struct {
				Seat, Name string
				People     int
				Meals      []string
				Agreed     bool
			}
		}
		require.NoError(t, json.Unmarshal([]byte(out), &res))
		require.Equal(t, "window", res.StructuredContent.Seat)
		require.Equal(t, 2, res.StructuredContent.People, "the default")
		require.Equal(t, []string{"rice", "fish"}, res.StructuredContent.Meals)
		require.True(t, res.StructuredContent.Agreed)

		_, errs := order(exitFault, "--answer", "seat=2")
		require.Contains(t, errs, `mcpkit call: the server asks for "name"; write --answer name=value`+"\n")
		_, errs = order(exitFault, "--answer", "people=9")
		require.Contains(t, errs, "mcpkit call: --answer people=9: maximum: got 9, want 4\n")
		_, errs = order(exitOK, "--answer", "name=Ada", "--answer", "saet=1")
		require.Contains(t, errs, `mcpkit call: the server did not ask for "saet", so --answer was not used; did you mean "seat"?`+"\n")
		_, errs = order(exitUsage, "--answer", "seat")
		require.Contains(t, errs, `mcpkit call: invalid argument "seat" for "--answer" flag: write name=value`)
	}
}

// At a terminal, flags answer some fields and the user the others.
func TestAnswersShortenForms(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	screen := new(terminal)
	var out bytes.Buffer
	args := []string{"call", desk(t, bare), "order", "--answer", "seat=aisle", "--answer", "meals=", "--answer", "people=1", "--yes"}
	require.Equal(t, exitOK, run(t.Context(), args, streams{in: typed("Ada", "y"), out: &out, err: screen}), screen.String())
	require.Equal(t, "The server asks: Which seats?\nname [required]: agreed [yes or no, false when empty]: ", screen.String())
	require.Contains(t, out.String(), `"seat":"aisle"`)
}

// Keys has a tool that wants a confirmation.
type Keys struct{}

func (*Keys) Forget(ctx context.Context) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Forget all?")
	if !ok || err != nil {
		return "kept", err
	}
	return "forgot", nil
}

func (*Keys) Visit(ctx context.Context) (string, error) {
	return "visited", mcpkit.ElicitURL(ctx, "Pay.", "https://bank.example.com")
}

func TestYesConfirms(t *testing.T) {
	url, _ := serve(t, bare, &Keys{})
	out, _ := said(t, exitOK, "call", url, "forget", "--yes")
	require.Equal(t, "forgot\n", out)
	out, _ = said(t, exitOK, "call", url, "forget", "--yes", "--answer", "confirm=no")
	require.Equal(t, "kept\n", out)
	_, errs := said(t, exitProtocol, "call", url, "visit", "--yes") // nobody is there to visit the page
	require.NotContains(t, errs, "The server wants you to visit")
}

func TestReadWatchesAResource(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		url, srv := serve(t, bare, &Lab{})
		ctx, cancel := context.WithCancel(t.Context())
		reads := 0
		out := &watcher{text: "This is a lab.", seen: func() {
			if reads++; reads == 2 {
				cancel()
				return
			}
			srv.ResourceUpdated("lab://readme")
		}}
		var errs bytes.Buffer
		args := []string{"read", url, "lab://readme", "--watch", "--protocol-version", version}
		require.Equal(t, exitInterrupted, run(ctx, args, streams{in: strings.NewReader(""), out: out, err: &errs}), errs.String())
		require.Equal(t, 2, reads)
	}
}

func TestTheGoCommandGetsItsOwnVariables(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod -tags=x")
	t.Setenv("GOOGLE_API_KEY", "hush")
	given := goVariables("go")
	require.Contains(t, given, "GOFLAGS=-mod=mod -tags=x")
	require.NotContains(t, strings.Join(given, " "), "hush", "it only begins like one of Go's")
	require.Nil(t, goVariables("./notes"))
}

func TestChoicesAreReadFromAllVersions(t *testing.T) {
	for _, test := range []struct {
		name, schema string
		answer       string
		want, err    string
		hint         string
	}{
		{"enum", `{"type":"string","enum":["a","b"]}`, "2", `"b"`, "", " [empty for none]"},
		{"enum with names", `{"type":"string","enum":["a","b"],"enumNames":["Ay","Bee"]}`, "bee", `"b"`, "", " [empty for none]"},
		{"titles", `{"type":"string","oneOf":[{"const":"a","title":"Ay"},{"const":"b"}],"default":"a"}`, "Ay", `"a"`, "", ` ["a" when empty]`},
		{"not a choice", `{"type":"string","enum":["a","b"]}`, "3", "", `"3" is not one of the choices`, " [empty for none]"},
		{"a value that looks like a number", `{"type":"string","enum":["2","1"]}`, "2", `"2"`, "", " [empty for none]"},
		{"several", `{"type":"array","items":{"enum":["a","b"]}}`, "2, a,", `["b","a"]`, "", " [numbers, separated by commas, empty for none]"},
		{"several with titles", `{"type":"array","items":{"anyOf":[{"const":"a","title":"Ay"}]}}`, "ay", `["a"]`, "", " [numbers, separated by commas, empty for none]"},
		{"number", `{"type":"number"}`, "1.50", `1.50`, "", " [number, empty for none]"},
		{"not a number", `{"type":"number"}`, `"1"`, "", `"\"1\"" is not a number`, " [number, empty for none]"},
		{"yes", `{"type":"boolean","default":false}`, "Y", `true`, "", " [yes or no, false when empty]"},
		{"text", `{"type":"string"}`, `a "b"`, `"a \"b\""`, "", " [empty for none]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fields, err := formFields(json.RawMessage(`{"type":"object","properties":{"x":` + test.schema + `}}`))
			require.NoError(t, err)
			require.Len(t, fields, 1)
			require.Equal(t, test.hint, fields[0].hint())
			got, err := fields[0].parse(test.answer, fields[0].choices())
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
		})
	}
}

// Any schema of a server and any input of a user lead to JSON or an error, and to no control
// characters on the screen.
func FuzzForms(f *testing.F) {
	f.Add(`{"type":"object","properties":{"x":{"type":"string","enum":["a"],"enumNames":["A\u001b[0m"]}},"required":["x"]}`, "1")
	f.Add(`{"properties":{"x":{"type":"array","items":{"anyOf":[{"const":"a"}]}}}}`, "1,,2")
	f.Add(`{"properties":{"x":{"type":"integer","default":{}}}}`, "1e400")
	f.Add(`{"properties":{"x":{"type":"boolean"}}}`, "maybe")
	f.Add(`{"properties":[]}`, "")
	f.Fuzz(func(t *testing.T, schema, answer string) {
		fields, err := formFields(json.RawMessage(schema))
		if err != nil {
			return
		}
		for _, field := range fields {
			choices := field.choices()
			for _, shown := range []string{cleanLine(field.label()), field.hint()} {
				require.False(t, strings.ContainsFunc(shown, unicode.IsControl), "%q", shown)
			}
			if value, err := field.parse(answer, choices); err == nil {
				require.True(t, json.Valid(value), string(value))
				_ = field.schema.Validate(value)
			}
		}
	})
}

package mcpkit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-playground/validator/v10"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A mood is one of its constants.
type mood string

const (
	calm   mood = "calm"   // Nothing to do.
	hectic mood = "hectic" // Too much to do.
)

// A volume is one of its constants, too.
type loudness int

const (
	low  loudness = 1
	high loudness = 9
)

type moodInput struct {
	Mood   mood              `json:"mood" validate:"enum"`
	Volume loudness          `json:"volume" default:"1" validate:"enum"`
	Others []mood            `json:"others,omitempty" validate:"max=2,dive,enum"`
	Rooms  map[mood]loudness `json:"rooms,omitempty" validate:"dive,keys,enum,endkeys,enum"`
}

type moods struct {
	_ struct {
		Describe mcpkit.Prompt
	}
}

func (moods) Set(in moodInput) string { return fmt.Sprint(in.Mood, in.Volume) }

func (moods) Describe(in struct {
	Mood mood `json:"mood" validate:"enum"`
}) string {
	return string(in.Mood)
}

func TestRuleEnumRestrictsToTheConstantsOfTheType(t *testing.T) {
	for name, opts := range map[string][]mcpkit.Option{
		"compiled rules":            nil,
		"the validator of the user": {mcpkit.Validator(validator.New(validator.WithRequiredStructEnabled()))},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t, &moods{}, opts...)
			p := modern(t, srv)
			list := p.result("tools/list", `{}`)
			require.Contains(t, list, `"mood":{"type":"string","description":"A mood is one of its constants.\n\"calm\": Nothing to do.\n\"hectic\": Too much to do.","enum":["calm","hectic"]}`)
			require.Contains(t, list, `"enum":[1,9]`)

			set := func(arguments string) string {
				return p.result("tools/call", `{"name":"set","arguments":`+arguments+`}`)
			}
			require.Contains(t, set(`{"mood":"calm","volume":9,"others":["hectic"],"rooms":{"calm":1}}`), `"text":"calm9"`)
			for arguments, want := range map[string]string{
				`{"mood":"sad"}`:                     `/mood: got \"sad\", want one of \"calm\" or \"hectic\"`,
				`{"mood":"calm","volume":2}`:         `/volume: got 2, want one of 1 or 9`,
				`{"mood":"calm","others":["x"]}`:     `/others/0: got \"x\", want one of`,
				`{"mood":"calm","rooms":{"calm":5}}`: `/rooms/calm: got 5, want one of 1 or 9`,
				`{"mood":"calm","rooms":{"x":1}}`:    `/rooms/x: got \"x\", want`,
			} {
				require.Contains(t, set(arguments), want)
			}
			require.Contains(t, p.result("completion/complete", `{"ref":{"type":"ref/prompt","name":"describe"},"argument":{"name":"mood","value":"h"}}`), `"values":["hectic"]`)
		})
	}
}

// A shade has no constants.
type shade string

type shades struct{}

func (shades) Paint(in struct {
	Shade shade `json:"shade" validate:"enum"`
}) {
}

func TestRuleEnumWithoutConstantsFailsAtStartup(t *testing.T) {
	_, err := mcpkit.New(&shades{})
	require.Error(t, err)
	var found []string
	for line := range strings.Lines(err.Error()) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), ", field ")
		found = append(found, text)
	}
	require.Equal(t, []string{
		`Shade: rule "enum": the constants of mcpkit_test.shade are not known, since the program runs without its source; run "mcpkit gen" in its package, give the type a method Values() []shade, or list the values with oneof`,
	}, found)
}

// Command skills serves how a team works: as skills that models read, and as a tool that checks the
// result.
//
//	go run ./cmd/mcpkit skills 'go run ./examples/skills'
package main

import (
	"context"
	"embed"
	"log"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Team helps with the work of a team.
type Team struct {
	_ mcpkit.Info `name:"team" version:"1.0.0"`
	_ struct {
		CheckMessage mcpkit.Tool `hints:"readonly" params:"message"`
		OnDuty       mcpkit.Skip
	}
	today func() time.Time
}

// CheckMessage reports what is wrong with a commit message. It returns nothing if the message is good.
func (*Team) CheckMessage(message string) []string {
	first, _, _ := strings.Cut(message, "\n")
	faults := []string{}
	if len(first) > 72 {
		faults = append(faults, "the first line is longer than 72 characters")
	}
	if strings.HasSuffix(first, ".") {
		faults = append(faults, "the first line ends with a full stop")
	}
	return faults
}

// docs:begin library

//go:embed skills
var files embed.FS

// OnDuty returns the text of a skill, which differs from day to day.
func (t *Team) OnDuty(context.Context) (string, error) {
	who := []string{"Ada", "Grace", "Barbara"}[t.today().YearDay()%3]
	return "Ask " + who + " before you deploy.\n", nil
}

// newLibrary returns the skills of the team: those of a folder, and one that a method makes.
func newLibrary(t *Team) *skills.Library {
	return skills.Join(
		skills.FS(files, skills.Dir("skills")),
		skills.Func("deploy", "Deploy to production. Says who is on duty.", t.OnDuty),
	)
}

// docs:end library

func main() {
	// docs:begin serve
	team := &Team{today: time.Now}
	err := mcpkit.Serve(team, newLibrary(team))
	// docs:end serve
	if err != nil {
		log.Fatal(err)
	}
}

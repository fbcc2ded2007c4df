package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills/skillsclient"
)

// A skillReport is what runSkills found out about one skill.
type skillReport struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Dynamic     bool   `json:"dynamic,omitempty"`
	Files       int    `json:"files"` // 0 for a dynamic skill
	Bytes       int64  `json:"bytes"` // of all files
	Fault       string `json:"fault,omitempty"`
}

func skillsCommand(std streams) *cobra.Command {
	return remoteCommand(std, &cobra.Command{
		Use:   "skills SERVER [URI ...]",
		Short: "Compare the skills of a server with what it lists",
		Long: `Reads all files of the skills of a server, or of the skills with the URIs, and
compares them with what the server lists: sizes, digests and front matter.`,
	}, runSkills)
}

// runSkills is the command skills.
func runSkills(ctx context.Context, r *remote) error {
	faulty := false
	err := r.with(ctx, func(c *client.Client) error {
		reports, err := checkSkills(ctx, c, r.rest)
		if err != nil {
			return err
		}
		faulty = slices.ContainsFunc(reports, func(s skillReport) bool { return s.Fault != "" })
		return r.write(reports, func() {
			for _, s := range reports {
				r.writeSkill(&s)
			}
		})
	})
	if err == nil && faulty {
		r.say("some skills are not what the server lists")
		return exit(exitFault)
	}
	return err
}

// checkSkills reports on the skills with the URIs, or on all that the server lists.
func checkSkills(ctx context.Context, c *client.Client, uris []string) ([]skillReport, error) {
	reports := []skillReport{}
	for _, uri := range uris {
		s, err := skillsclient.Get(ctx, c, uri)
		if err != nil {
			return nil, err
		}
		reports = append(reports, checkSkill(ctx, s))
	}
	if len(uris) > 0 {
		return reports, nil
	}
	for s, err := range skillsclient.List(ctx, c) {
		switch _, invalid := errors.AsType[*skillsclient.EntryError](err); {
		case err == nil:
			reports = append(reports, checkSkill(ctx, s))
		case invalid:
			reports = append(reports, skillReport{Fault: err.Error()})
		default:
			return nil, err
		}
	}
	return reports, nil
}

// checkSkill reads all files of a skill.
func checkSkill(ctx context.Context, s *skillsclient.Skill) skillReport {
	report := skillReport{URI: s.URI(), Name: s.Name(), Description: s.Description(), Dynamic: s.Dynamic(), Files: len(s.Files())}
	for _, f := range s.Files() {
		report.Bytes += f.Size
	}
	loaded, err := s.Load(ctx)
	for _, f := range s.Files() {
		if err == nil && f.URI != s.URI() {
			_, err = loaded.Read(ctx, f.Path)
		}
	}
	if err != nil {
		report.Fault = err.Error()
	}
	return report
}

func (r *remote) writeSkill(s *skillReport) {
	verdict := fmt.Sprintf("verified, %d files, %d bytes", s.Files, s.Bytes)
	if s.Dynamic {
		verdict = "dynamic: only the front matter was compared"
	}
	if s.Fault != "" {
		verdict = r.out.paint(red, clean(s.Fault))
	}
	r.out.line(r.out.paint(bold, fmt.Sprintf("%-40s", cleanLine(s.URI))), cleanLine(s.Description), "("+verdict+")")
}

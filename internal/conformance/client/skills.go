package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/skills/skillsclient"
)

// listSkills lists the skills and reads none of their files.
func listSkills(ctx context.Context, url string) error {
	return with(ctx, url, func(c *client.Client) error {
		found := 0
		for _, err := range skillsclient.List(ctx, c) {
			if err != nil {
				return err
			}
			found++
		}
		if found == 0 {
			return errors.New("the server lists no skills")
		}
		return nil
	})
}

// loadSkills loads each skill, and then reads all of its files. The suite's server lies about the
// SKILL.md, so the library must not load it.
func loadSkills(ctx context.Context, url string) error {
	return with(ctx, url, func(c *client.Client) error {
		for skill, err := range skillsclient.List(ctx, c) {
			if err != nil {
				return err
			}
			_, err = skill.Load(ctx)
			if _, ok := errors.AsType[*skillsclient.VerificationError](err); ok {
				return nil
			}
			if err != nil {
				return err
			}
			for _, file := range skill.Files {
				if _, err := skill.Read(ctx, file.Path); err != nil {
					return err
				}
			}
		}
		return fmt.Errorf("the skills were loaded, although one is not what the server lists")
	})
}

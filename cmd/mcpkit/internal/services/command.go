package services

import (
	"context"
	"os"
	"os/exec"
	"time"
)

// interruptTime is how long the go command may take to end after an interrupt.
const interruptTime = 500 * time.Millisecond

// Go returns the go command with arguments. When ctx ends, the command is interrupted, so that it
// removes its temporary files. Half a second later it is killed, and Wait returns even if compilers
// have its output open.
func Go(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.WaitDelay = interruptTime
	cmd.Cancel = func() error {
		if cmd.Process.Signal(os.Interrupt) != nil { // Windows has none
			return cmd.Process.Kill()
		}
		return nil
	}
	return cmd
}

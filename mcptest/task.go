package mcptest

import (
	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Tasks returns a view whose client supports tasks: see [client.Tasks]. [Server.Call] follows a
// task to its end, and answers its questions as those of a call. [Result.AsTask] requires that the
// call was a task. [Server.Start] leaves the task to the test.
//
// Views of protocol versions before 2026-07-28 have no tasks: there the server runs the tool in the
// call.
func (s *Server) Tasks() *Server { return s.with(func(v *Server) { v.tasks = true }) }

// Start calls a tool as a task and returns the task. The test ends if the server runs the tool in
// the call instead. The client must support tasks: see [Server.Tasks].
func (s *Server) Start(tool string, in any) *client.Task {
	s.t.Helper()
	task, err := client.Start(s.t.Context(), s.Client(), tool, in)
	switch {
	case err != nil:
		s.t.Fatalf("mcptest: start %s: %v", tool, err)
	case task.ID() == "":
		s.t.Fatalf("mcptest: start %s: the server ran the tool in the call; give the tool the tag task", tool)
	}
	return task
}

// Await waits for a task of [Server.Start], or for the one with the same ID of another view, and
// returns its result. The handlers and answers of the view of the task answer its questions.
func (s *Server) Await(task *client.Task) *Result {
	s.t.Helper()
	return s.do("task "+task.ID(), nil, func(r *Result, opts []client.CallOption) {
		r.task = true
		r.take(task.Wait(s.t.Context(), opts...))
	})
}

// AsTask requires that the call was a task.
func (r *Result) AsTask() *Result {
	r.t.Helper()
	if !r.task {
		r.fail("a task", "a call that was not a task")
	}
	return r
}

// callAsTask calls a tool and waits for the task that the call may become.
func (s *Server) callAsTask(r *Result, tool string, in any, opts []client.CallOption) (*protocol.CallToolResult, error) {
	task, err := client.Start(s.t.Context(), s.Client(), tool, in, opts...)
	if err != nil {
		return nil, err
	}
	r.task = task.ID() != ""
	return task.Wait(s.t.Context())
}
